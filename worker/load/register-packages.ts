/**
 * Makes Node resolve the imports of an app by the rules of `package-resolution.ts`, in ES modules and CommonJS.
 *
 * Since Node 22.15 this is a hook in the main thread. Before, ES modules need a thread of hooks, which costs 35 ms of CPU
 * at a worker's start, or 7 ms if tsx runs it already (Node 20, measured with process.cpuUsage). No such thread is started
 * for an app in a folder from which Node finds the right packages by itself.
 */
import Module, { createRequire, register } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { PackageResolution, isOwn, type ResolveContext } from './package-resolution.js';

/** The module that calls `require`. */
interface Parent {
  readonly filename?: string | null;
}

/**
 * The parts of CommonJS, which Node 20 offers no documented hooks for; `registerHooks` is documented since Node 22.15.
 * test/house/node-internals.test.ts names those that a new Node lacks.
 */
interface ModuleInternals {
  readonly registerHooks?: (hooks: { readonly resolve: ResolveHook }) => void;
  /** Returns the path of the file that `require(request)` loads in the module `parent`. */
  _resolveFilename: (request: string, parent: Parent | null, ...rest: readonly unknown[]) => string;
  /** Returns what the module `request` exports. */
  _load: (request: string, ...rest: readonly unknown[]) => unknown;
  readonly _extensions: Record<string, unknown>;
  /** The `node_modules` folders in which Node looks for the packages of a file in `folder`. */
  readonly _nodeModulePaths: (folder: string) => readonly string[];
}

type ResolveHook = (
  specifier: string,
  context: ResolveContext,
  next: (specifier: string, context: ResolveContext) => unknown,
) => unknown;

const node = Module as unknown as ModuleInternals;

/** Node's own resolver and loaders, before tsx replaces them. */
const NODE = requireParts();
const OWN_PACKAGE = fileURLToPath(new URL('../../../package.json', import.meta.url));

/** The folder that the server was started in. A worker may change its working directory later. */
const SERVER_FOLDER = process.cwd();

/** Null until the first app. All apps share one: each further hook would repeat the lookups of those before it. */
let shared: PackageResolution | null = null;

/** `folder` is that of the app, `modelDir` that of its model if it differs. */
export function registerPackages(folder: string, modelDir = folder): void {
  const folders = [...new Set([folder, modelDir, SERVER_FOLDER])];
  const parents = folders.map((path) => pathToFileURL(join(path, 'any-file')).href);
  const needsThread = node.registerHooks === undefined && !(isAtHome(folder) && isAtHome(modelDir));
  shared ??= registerShared();
  shared.add(parents);
  if (needsThread) register('./package-hooks.js', import.meta.url, { data: parents });
}

function registerShared(): PackageResolution {
  const packages = new PackageResolution([]);
  loadOwnByNode();
  patchRequire(packages); // a hook cannot change the importing file of a `require`
  node.registerHooks?.({ resolve: (...given) => packages.resolve(...given) });
  return packages;
}

/** Whether Node by itself finds from `folder` this copy of banana-serve and every package of the server's folder. */
function isAtHome(folder: string): boolean {
  const paths = node._nodeModulePaths(folder);
  if (!node._nodeModulePaths(SERVER_FOLDER).every((path) => paths.includes(path))) return false;
  try {
    const found = createRequire(join(folder, 'any-file')).resolve('banana-serve/package.json');
    return found === OWN_PACKAGE;
  } catch {
    return false;
  }
}

/** Loads this package without tsx, which would translate its ES modules for `require` and so make a second copy of them. */
function loadOwnByNode(): void {
  const before = node._load;
  node._load = (request, ...rest) => {
    if (!isOwn(request)) return before(request, ...rest);
    const present = requireParts();
    useRequireParts(NODE);
    try {
      return before(NODE.resolve(request, moduleAt(OWN_PACKAGE)), ...rest);
    } finally {
      useRequireParts(present);
    }
  };
}

/** The resolver of `require` and its loaders by file extension, as they are now. */
function requireParts() {
  return { resolve: node._resolveFilename, loaders: { ...node._extensions } };
}

/** Makes `require` use these parts; loaders of further extensions stay. */
function useRequireParts({ resolve, loaders }: typeof NODE): void {
  node._resolveFilename = resolve;
  Object.assign(node._extensions, loaders);
}

/** A module that stands for an importing file at `path`, which need not exist. */
function moduleAt(path: string): Parent {
  return Object.assign(new Module(path), { filename: path, paths: node._nodeModulePaths(dirname(path)) });
}

function patchRequire(packages: PackageResolution): void {
  const before = node._resolveFilename;
  node._resolveFilename = (request, parent, ...rest) => {
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
