/** Explains an error of an import by file, line, cause and cure. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describeThrown } from '../../protocol/errors.js';
import { asSentence } from '../../protocol/text/sentences.js';
import { firstFrameOutside, withoutOwnFrames } from '../process/stack-frame.js';

/** The error of an app that fails to load in the same way every time; its message is for the app's author. */
export class AppLoadError extends Error {
  override readonly name = 'AppLoadError';
  /**
   * False for an error thrown while an import runs, which may pass (a download, a device); true for a mistake in the
   * file.
   */
  readonly permanent: boolean;

  constructor(message: string, options: { cause?: unknown; permanent?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.permanent = options.permanent ?? true;
  }
}

export function explainImportError(path: string, thrown: unknown): AppLoadError {
  const { message, stack } = describeThrown(thrown);
  const text = stripAnsi(`${message}\n${stack}`);
  const code = (thrown as { code?: unknown } | null)?.code;
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') return missingImport(path, text);
  const syntax = syntaxErrorPlace(text) ?? (hidesItsPlace(text) ? askFreshProcess(path) : null);
  if (syntax !== null) {
    const { place, message: what } = syntax;
    return new AppLoadError(`${place}: syntax error: ${withCure(what)}`, { cause: thrown });
  }
  const frame = firstFrameOutside(stack);
  return new AppLoadError(`${frame ?? path}: importing the app threw: ${withoutOwnFrames(stack)}`, {
    cause: thrown,
    permanent: isAppsMistake(thrown),
  });
}

/** Compares the class by its name, because it may come from another copy of this package. */
function isAppsMistake(thrown: unknown): boolean {
  const name = (thrown as { name?: unknown } | null)?.name;
  return name === 'RouteAlreadyInUseException' || name === 'InvalidEndpointTypeException';
}

/**
 * Adds the cure for a CommonJS error: a `.ts` file outside a package of type `module` is compiled to CommonJS, as Node
 * and TypeScript do.
 */
function withCure(message: string): string {
  if (!/^top-level await .*"cjs"/i.test(message)) return message;
  return `${asSentence(message)} Name the file .mts, or put { "type": "module" } into the package.json beside it.`;
}

/** Returns `file:line` of the first line of `path` that contains `text`; `file:1` if none does. */
export function locateText(path: string, text: string | RegExp): string {
  let source: string;
  try {
    source = readFileSync(path, 'utf8');
  } catch {
    return path; // the line is optional; the file may be a virtual one
  }
  const contains = (line: string): boolean =>
    typeof text === 'string' ? line.includes(text) : text.test(line);
  const line = source.split('\n').findIndex(contains);
  return `${path}:${Math.max(line, 0) + 1}`;
}

function missingImport(path: string, text: string): AppLoadError {
  if (!existsSync(path)) return new AppLoadError(`${path}: no such file. Check the path and its extension.`);
  const specifier = /Cannot find (?:package|module) '([^']+)'/.exec(text)?.[1] ?? 'a module';
  const importer = importerOf(text) ?? path;
  const isLocal = specifier.startsWith('.') || specifier.startsWith('/') || specifier.startsWith('file:');
  if (isLocal) {
    const file = specifier.startsWith('file:') ? fileURLToPath(specifier) : specifier;
    if (path.startsWith(`${file}?`))
      return new AppLoadError(
        `${path}: the TypeScript loader (tsx) takes the "?" in this path for the beginning of a query, and looks for ${file}. Rename the folder or file that has it in its name.`,
      );
    const name = file.split('/').at(-1) ?? file;
    return new AppLoadError(
      `${locateText(importer, name.replace(/\.\w+$/, ''))}: cannot import ${JSON.stringify(file)}: no such file. Check the path and its extension.`,
    );
  }
  const packageName = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
  return new AppLoadError(
    `${locateText(importer, packageName)}: cannot import ${JSON.stringify(specifier)}: the package is not installed. Run: npm install ${packageName}`,
  );
}

function importerOf(text: string): string | null {
  const imported = /imported from (\S+)/.exec(text)?.[1];
  if (imported !== undefined) return imported.startsWith('file:') ? fileURLToPath(imported) : imported;
  // The TypeScript loader appends a query to a path that was required.
  return /Require stack:\n- ([^?\n]+)/.exec(text)?.[1]?.trim() ?? null;
}

function syntaxErrorPlace(text: string): { place: string; message: string } | null {
  // The TypeScript loader: `/app.ts:3:5: ERROR: Expected ";" but found "x"`.
  const translated = /^[ \t]*(\S.*?):(\d+):(\d+): ERROR: (.+)$/m.exec(text);
  if (translated !== null) {
    const [, file = '', line, column, message] = translated;
    return { place: `${sourceFile(file)}:${line}:${column}`, message: message as string };
  }
  // Node: `file:///app.js:3`, the line, a caret, then `SyntaxError: …`.
  const native = /^(file:\/\/\S+|\/\S+):(\d+)$/m.exec(text);
  const told = native && /^SyntaxError: (.+)$/m.exec(text.slice(native.index));
  if (native === null || told === null) return null;
  const [, file = '', line] = native;
  const place = file.startsWith('file:') ? fileURLToPath(file) : file;
  return { place: `${place}:${line}`, message: told[1] as string };
}

/** Finds the file that the TypeScript loader names: it writes `.ts` for `.mts` and `.cts` files too. */
function sourceFile(file: string): string {
  const candidates = [file, file.replace(/\.ts$/, '.mts'), file.replace(/\.ts$/, '.cts')];
  return candidates.find((candidate) => existsSync(candidate)) ?? file;
}

/**
 * Whether a SyntaxError comes from Node's own parser, which gives no position in an ES module, and not from a line of
 * the app (such as `JSON.parse`).
 */
function hidesItsPlace(text: string): boolean {
  return /^SyntaxError: /m.test(text) && firstFrameOutside(text) === null;
}

/**
 * Node prints the position of an ES module's syntax error only when it dies of it, so the file is checked in a new
 * process. No code of the app runs there.
 */
function askFreshProcess(path: string): { place: string; message: string } | null {
  const program = `import ${JSON.stringify(pathToFileURL(path).href)}`;
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: FRESH_PROCESS_TIMEOUT_MS,
  });
  return syntaxErrorPlace(stripAnsi(stderr));
}

const FRESH_PROCESS_TIMEOUT_MS = 10_000;

function stripAnsi(text: string): string {
  // eslint-disable-next-line no-control-regex -- terminal colours are control characters
  return text.replace(/\x1b\[[0-9;]*m/g, '');
}
