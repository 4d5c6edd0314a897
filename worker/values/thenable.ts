/** Whether the value has to be awaited: a promise, or any object with a `then`. A getter of the app may throw here. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
