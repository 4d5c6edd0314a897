/**
 * Resolves an app's imports independently of its folder. `banana-serve` is this copy of the package. A package that is
 * not found from the importing file upwards is looked up from the app's folder and from the folder in which the server
 * was started.
 *
 * This file runs in the thread of the app, and on older versions of Node also in the thread of its import hooks.
 */

/** The package of this file; files of the same package may import it by its name. */
const OWN_PACKAGE = new URL('../../../package.json', import.meta.url).href;
const OWN_NAME = 'banana-serve';

/** The context that Node passes to a resolve hook, as far as it is used here. */
export interface ResolveContext {
  readonly parentURL?: string | undefined;
}

/** `folders` are URLs of files, which need not exist, in whose folders packages are looked up as well. */
export class PackageResolution {
  readonly #folders: Set<string>;

  constructor(folders: readonly string[]) {
    this.#folders = new Set(folders);
  }

  add(folders: readonly string[]): void {
    for (const folder of folders) this.#folders.add(folder);
  }

  /** As `next` does, returns or promises, throws or rejects: at last with the error of Node for the original import. */
  resolve<C extends ResolveContext, R>(
    specifier: string,
    context: C,
    next: (specifier: string, context: C) => R,
  ): R {
    const resolveFrom = ([place, ...others]: readonly C[], first?: unknown): R => {
      const orFromOthers = (thrown: unknown): R => {
        if (!isMissingPackage(specifier, thrown)) throw thrown;
        if (others.length === 0) throw first ?? thrown;
        return resolveFrom(others, first ?? thrown);
      };
      try {
        const found = next(specifier, place as C);
        return found instanceof Promise ? (found.catch(orFromOthers) as R) : found;
      } catch (thrown) {
        return orFromOthers(thrown);
      }
    };
    return resolveFrom(this.#places(specifier, context));
  }

  /** The importing files to resolve from, in order; the error of the first names the place that the author expects. */
  #places<C extends ResolveContext>(specifier: string, context: C): readonly C[] {
    if (isOwn(specifier)) return [{ ...context, parentURL: OWN_PACKAGE }];
    return [context, ...[...this.#folders].map((parentURL) => ({ ...context, parentURL }))];
  }
}

/** Whether the import is of this package. */
export function isOwn(specifier: string): boolean {
  return specifier === OWN_NAME || specifier.startsWith(`${OWN_NAME}/`);
}

/** Whether a bare package name was not found: not a path, not a URL, not an import of the package's own (`#x`). */
function isMissingPackage(specifier: string, thrown: unknown): boolean {
  const { code } = (thrown ?? {}) as { code?: unknown };
  const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  return isMissing && /^[^./#][^:]*$/.test(specifier);
}
