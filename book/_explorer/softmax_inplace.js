// The softmax of a row of scores. It needs no DOM.

/** Turn scores into weights, in place. */
export function softmaxInplace(scores) {
  const most = scores.reduce((a, b) => Math.max(a, b));
  let sum = 0;
  for (let j = 0; j < scores.length; j++) sum += scores[j] = Math.exp(scores[j] - most);
  for (let j = 0; j < scores.length; j++) scores[j] /= sum;
}
