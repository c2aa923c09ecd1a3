"""Evidence about academic integrity, side by side, on a page of its own. It proves nothing, and says so."""
