/** The names of Python for the members of a class: handlers are often carried over from there. */

/**
 * Gives each method and getter of the class a second name, such as `get_request_id` for `getRequestId`; the class declares
 * their types. `others`: names that differ, or that belong to fields.
 */
export function addPythonNames(prototype: object, others: Readonly<Record<string, string>> = {}): void {
  const own = Object.getOwnPropertyNames(prototype).filter((name) => /[A-Z]/.test(name));
  for (const name of new Set([...own, ...Object.keys(others)])) {
    const pythonName = others[name] ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const property = Object.getOwnPropertyDescriptor(prototype, name);
    Object.defineProperty(prototype, pythonName, property ?? { get: fieldReader(name), configurable: true });
  }
}

function fieldReader(name: string) {
  return function (this: Readonly<Record<string, unknown>>): unknown {
    return this[name];
  };
}
