/** Whether something has to be awaited: a promise, or anything else with a `then`. A hostile getter may throw here. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
