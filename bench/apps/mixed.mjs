/** A model for a mixed soak: the input names its work. */
export async function inference(input, { signal }) {
  if (input?.x !== undefined) return { y: input.x }; // a tensor
  switch (input?.act) {
    case 'wait':
      return wait(input.waitMs, signal);
    case 'stream':
      return rows(input.rows);
    case 'throw':
      throw new Error('as the input wants');
    case 'exit':
      process.exit(1);
    default:
      return { echo: input };
  }
}

function wait(waitMs, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, waitMs, { waitedMs: waitMs });
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve(null);
    });
  });
}

function* rows(count) {
  for (let row = 0; row < count; row += 1) yield { row, text: 'x'.repeat(200) };
}
