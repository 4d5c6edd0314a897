/** A model whose answer is a text of the length it is told, whatever else it is given. */
export function inference({ bytes }) {
  return 'x'.repeat(bytes);
}
