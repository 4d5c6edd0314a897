/** Exports beside the app itself that every way of writing one may have. */

/** Returns the `config` export. @throws a TypeError if it is no object */
export function configOf(exports: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const config = exports['config'] ?? {};
  if (typeof config === 'object' && !Array.isArray(config)) return config as Record<string, unknown>;
  throw new TypeError('export `config` must be an object, such as { runTimeout: "30s" }');
}

/** Whether inputs may run again, as the `config` export says. @throws a TypeError if it says neither true nor false */
export function repeatableOf(given: unknown): boolean {
  if (given === undefined || typeof given === 'boolean') return given === true;
  throw new TypeError('export `config`: repeatable must be true or false');
}

/** Checks what an app gives as its `init`, or what it calls that. @throws a TypeError if its body would not run when it is called */
export function assertNoGenerator(init: unknown, name = 'init'): void {
  if (!/Generator/.test(Object.prototype.toString.call(init))) return;
  throw new TypeError(
    `\`${name}\` is a generator: what stands in it would not run. Make it a plain or an async function`,
  );
}

/** Checks the export of this name. @throws a TypeError if it is there and is no function */
export function assertFunctionOrNone(exports: Readonly<Record<string, unknown>>, name: string): void {
  const value = exports[name];
  if (value === undefined || typeof value === 'function') return;
  throw new TypeError(`export \`${name}\` is ${kindOf(value)}; make it a function or remove it`);
}

/** What kind of value this is, such as `an object`, for a sentence that says it is of a wrong kind. */
export function kindOf(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`;
}
