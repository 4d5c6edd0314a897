/** The private fields of Node that workers use. test/house/node-internals.test.ts names those that a new Node lacks. */
import Module from 'node:module';

type ResolveFilename = (request: string, parent: Parent | null, ...rest: readonly unknown[]) => string;

/** The module that calls `require`. */
export interface Parent {
  readonly filename?: string | null;
}

/** The parts of CommonJS, which Node 20 offers no documented hooks for; `registerHooks` is documented since Node 22.15. */
interface ModuleInternals {
  registerHooks?(hooks: { resolve: SyncResolve }): void;
  _resolveFilename: ResolveFilename;
  _load(request: string, ...rest: readonly unknown[]): unknown;
  _extensions: Record<string, unknown>;
  _nodeModulePaths(folder: string): string[];
}

type SyncResolve = (
  specifier: string,
  context: ResolveContext,
  next: (specifier: string, context: ResolveContext) => unknown,
) => unknown;

interface ResolveContext {
  readonly parentURL?: string | undefined;
}

export const moduleInternals = Module as unknown as ModuleInternals;

/** The libuv stream of `process.stdout` or `process.stderr`. */
export interface OutputInternals {
  readonly _handle?: { setBlocking?(on: boolean): void };
}

/** Makes writes to a pipe wait for room in it; there is no documented way. Without the field, prints are only less prompt. */
export function setBlocking(output: NodeJS.WriteStream): void {
  (output as OutputInternals)._handle?.setBlocking?.(true);
}
