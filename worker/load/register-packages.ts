/**
 * Makes the imports of an app mean what `package-resolution.ts` says, in ES modules and CommonJS.
 *
 * Since Node 22.15 that is a hook in this thread. Before, ES modules need a thread of hooks, which costs 35 ms of CPU at
 * a worker's start, or 7 ms if tsx has it running already (Node 20, measured with process.cpuUsage): an app that lies
 * where Node finds the right packages by itself is spared it.
 */
import Module, { createRequire, register } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { PackageResolution, isOwn, type ResolveContext } from './package-resolution.js';

type SyncResolve = (
  specifier: string,
  context: ResolveContext,
  next: (specifier: string, context: ResolveContext) => unknown,
) => unknown;

/** Parts of `node:module` that the types of Node 20 do not know. */
interface ModuleParts {
  registerHooks?(hooks: { resolve: SyncResolve }): void;
  _resolveFilename: ResolveFilename;
  _load(request: string, ...rest: readonly unknown[]): unknown;
  _extensions: Record<string, unknown>;
  _nodeModulePaths(folder: string): string[];
}

interface Parent {
  readonly filename?: string | null;
}

type ResolveFilename = (request: string, parent: Parent | null, ...rest: readonly unknown[]) => string;

const parts = Module as unknown as ModuleParts;

/** How Node itself finds and loads a file, before tsx takes part. */
const NODE = { loaders: { ...parts._extensions }, resolve: parts._resolveFilename };
const OWN_PACKAGE = fileURLToPath(new URL('../../../package.json', import.meta.url));

/** The folder that the server was started in: a worker may go to another one later. */
const SERVER_FOLDER = process.cwd();

/** Null until the first app. One for all: each further hook would look everything up again for those before it. */
let shared: PackageResolution | null = null;

/** `folder`: of the app. `modelDir`: of its model, if that is another one. */
export function registerPackages(folder: string, modelDir = folder): void {
  const folders = [...new Set([folder, modelDir, SERVER_FOLDER])];
  const parents = folders.map((path) => pathToFileURL(join(path, 'any-file')).href);
  const needsThread = parts.registerHooks === undefined && !(isAtHome(folder) && isAtHome(modelDir));
  shared ??= registerShared();
  shared.add(parents);
  if (needsThread) register('./package-hooks.js', import.meta.url, { data: parents });
}

function registerShared(): PackageResolution {
  const packages = new PackageResolution([]);
  loadOwnByNode();
  patchRequire(packages); // a hook cannot change for whom a `require` is resolved
  parts.registerHooks?.({ resolve: (...given) => packages.resolve(...given) });
  return packages;
}

/** Whether Node finds there, by itself, this copy and every package that the server's folder would offer. */
function isAtHome(folder: string): boolean {
  const paths = parts._nodeModulePaths(folder);
  if (!parts._nodeModulePaths(SERVER_FOLDER).every((path) => paths.includes(path))) return false;
  try {
    const found = createRequire(join(folder, 'any-file')).resolve('banana-serve/package.json');
    return found === OWN_PACKAGE;
  } catch {
    return false;
  }
}

/** tsx would translate the ES modules of this package for `require`, and so make a second copy of them. */
function loadOwnByNode(): void {
  const before = parts._load;
  parts._load = (request, ...rest) => {
    if (!isOwn(request)) return before(request, ...rest);
    const [loaders, resolve] = [{ ...parts._extensions }, parts._resolveFilename];
    Object.assign(parts._extensions, NODE.loaders);
    parts._resolveFilename = NODE.resolve;
    try {
      return before(NODE.resolve(request, moduleAt(OWN_PACKAGE)), ...rest);
    } finally {
      Object.assign(parts._extensions, loaders);
      parts._resolveFilename = resolve;
    }
  };
}

/** What would import if the file were there. */
function moduleAt(path: string): Parent {
  const module = new Module(path);
  return Object.assign(module, { filename: path, paths: parts._nodeModulePaths(dirname(path)) });
}

function patchRequire(packages: PackageResolution): void {
  const before = parts._resolveFilename;
  parts._resolveFilename = (request, parent, ...rest) => {
    const context = {
      parentURL: typeof parent?.filename !== 'string' ? undefined : pathToFileURL(parent.filename).href,
    };
    return packages.resolve(request, context, (name, { parentURL }) =>
      parentURL === context.parentURL || parentURL === undefined
        ? before(name, parent, ...rest)
        : before(name, moduleAt(fileURLToPath(parentURL)), ...rest),
    );
  };
}
