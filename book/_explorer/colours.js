// The colours of attnlib.plotting, which are those of all figures.
export const COLOURS = { query: "#9b6bd1", key: "#c8641c", value: "#00967d", score: "#3b82c4", word: "#8a8f98" };
