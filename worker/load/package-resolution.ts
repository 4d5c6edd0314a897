/**
 * What an app's imports mean, wherever the app lies: `banana-serve` is this copy; a package that is not found from the
 * importing file upwards is looked for from the app's folder and from the folder in which the server was started.
 *
 * This file runs in the thread of the app, and on older versions of Node also in the thread of its import hooks.
 */

/** The package of this file: what lies beside its package.json may import it by its own name. */
const OWN_PACKAGE = new URL('../../../package.json', import.meta.url).href;
const OWN_NAME = 'banana-serve';

/** How an import is resolved: what Node hands to a hook, as far as it matters here. */
export interface ResolveContext {
  readonly parentURL?: string | undefined;
}

export type NextResolve<C extends ResolveContext, R> = (specifier: string, context: C) => R;

/** `folders`: URLs of files that need not exist, in whose folders packages are looked for besides. */
export class PackageResolution {
  readonly #folders: Set<string>;

  constructor(folders: readonly string[]) {
    this.#folders = new Set(folders);
  }

  add(folders: readonly string[]): void {
    for (const folder of folders) this.#folders.add(folder);
  }

  /** @throws what Node throws of the import as it stands */
  resolve<C extends ResolveContext, R>(specifier: string, context: C, next: NextResolve<C, R>): R {
    if (isOwn(specifier)) return next(specifier, { ...context, parentURL: OWN_PACKAGE });
    try {
      return next(specifier, context);
    } catch (thrown) {
      if (!isMissingPackage(specifier, thrown)) throw thrown;
      for (const parentURL of this.#folders) {
        const found = resolvedOrNull(() => next(specifier, { ...context, parentURL }));
        if (found !== null) return found.value;
      }
      throw thrown;
    }
  }

  /** @throws what Node throws of the import as it stands */
  async resolveLater<C extends ResolveContext, R>(
    specifier: string,
    context: C,
    next: NextResolve<C, Promise<R>>,
  ): Promise<R> {
    if (isOwn(specifier)) return await next(specifier, { ...context, parentURL: OWN_PACKAGE });
    try {
      return await next(specifier, context);
    } catch (thrown) {
      if (!isMissingPackage(specifier, thrown)) throw thrown;
      for (const parentURL of this.#folders) {
        const found = await next(specifier, { ...context, parentURL }).then((value) => ({ value }), forgive);
        if (found !== null) return found.value;
      }
      throw thrown;
    }
  }
}

function resolvedOrNull<R>(resolve: () => R): { value: R } | null {
  try {
    return { value: resolve() };
  } catch (thrown) {
    return forgive(thrown);
  }
}

/** It is not there either: the error of the first look tells the app's author where it should have been. */
function forgive(thrown: unknown): null {
  if (isMissing(thrown)) return null;
  throw thrown;
}

/** Whether the import is one of this package. */
export function isOwn(specifier: string): boolean {
  return specifier === OWN_NAME || specifier.startsWith(`${OWN_NAME}/`);
}

/** Not a path, not a URL, not an import of the package's own (`#x`). */
function isMissingPackage(specifier: string, thrown: unknown): boolean {
  return /^[^./#][^:]*$/.test(specifier) && isMissing(thrown);
}

function isMissing(thrown: unknown): boolean {
  const { code } = (thrown ?? {}) as { code?: unknown };
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
}
