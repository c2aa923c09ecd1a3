// Numbers in the address of a page. It needs no DOM.

/** Read a number within limits; text that is not a number, or is too long, gives the default. */
export function numberWithin(text, [low, high], otherwise) {
  return /^\d{1,4}(\.\d{1,4})?$/.test(text ?? "") ? Math.min(high, Math.max(low, Number(text))) : otherwise;
}
