"""Send grades to a learning management system through the Assignment and Grade Services of LTI 1.3 Advantage."""
