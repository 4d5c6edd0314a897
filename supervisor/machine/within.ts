/** Waits for a promise with a time limit. */

/** Resolves with the result of `coming`, or with null after `limitMs`. */
export async function within<T>(limitMs: number, coming: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), limitMs).unref(); // must not keep the process alive
  });
  const first = await Promise.race([coming, late]);
  clearTimeout(timer);
  return first;
}
