/**
 * Reads the code and JSON files below a folder, and compares two such readings by content: a save without a change does
 * not count, and an app that writes the same file at every start does not restart itself.
 */
import { hash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { readFile, readdir, stat } from 'node:fs/promises';
import { dirname, extname, join, sep } from 'node:path';

/** Facts about source files that watching needs. Each runtime provides them; this folder knows no language. */
export interface Sources {
  /** Names of the languages, for messages. */
  readonly languages: readonly string[];
  /** Extensions of its watched files, wherever they lie in the folder of an app. */
  readonly extensions: readonly string[];
  /** Names of folders that never contain an app's own sources: packages, and outputs of builds and tests. */
  readonly foldersOfOthers: readonly string[];
  /**
   * Candidate paths of the files that `text`, the content of `file`, loads, relative to the app's folder and perhaps above
   * it. Each import has several candidates, most of which do not exist. The text is only read, not run.
   */
  localImports(file: string, text: string): string[];
}

/** Joins the sources of several languages; the extension of a file decides how its imports are read. */
export function joinSources(all: readonly Sources[]): Sources {
  return {
    languages: all.flatMap(({ languages }) => languages),
    extensions: all.flatMap(({ extensions }) => extensions),
    foldersOfOthers: all.flatMap(({ foldersOfOthers }) => foldersOfOthers),
    localImports: (file, text) => {
      const own = all.find(({ extensions }) => extensions.includes(extname(file)));
      return own?.localImports(file, text) ?? [];
    },
  };
}

interface FileMark {
  readonly bytes: number;
  /** ctime, which changes with every write, even if the program resets mtime. */
  readonly statusChangedAtMs: number;
  readonly content: string;
}

/** Files by their path relative to the folder. */
export type FileTree = ReadonlyMap<string, FileMark>;

/** Labels, settings and the like, which every app may read. */
const DATA_EXTENSION = '.json';

/** The server's own options, which are read only at its start. */
const OPTIONS_FILE = 'banana.json';

/** Larger files are data: reading them at every start and change would take too long. */
const MAX_HASHED_BYTES = 1024 * 1024;

/** Whether this path, relative to the folder, and everything below it is ignored. */
export function isIgnored(path: string, { foldersOfOthers }: Sources): boolean {
  return path
    .split(sep)
    .some((name) => name.startsWith('.') || name === OPTIONS_FILE || foldersOfOthers.includes(name));
}

export function isAppFile(name: string, sources: Sources): boolean {
  return extname(name) === DATA_EXTENSION || isCode(name, sources);
}

function isCode(name: string, { extensions }: Sources): boolean {
  return extensions.includes(extname(name));
}

/**
 * Reads the tree; files with the same size and ctime as in `before` are not read again. `onFolder` is called for every
 * folder before it is read, so that later changes can be noticed. Files that disappear meanwhile are left out.
 */
export async function readTree(
  root: string,
  sources: Sources,
  before: FileTree,
  onFolder: (path: string) => void,
): Promise<FileTree> {
  const tree = new Map<string, FileMark>();
  const folders = [''];
  for (let below = folders.pop(); below !== undefined; below = folders.pop()) {
    const folder = join(root, below);
    onFolder(folder);
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = join(below, entry.name);
      if (isIgnored(entry.name, sources)) continue;
      if (entry.isDirectory()) folders.push(path);
      else if (isAppFile(entry.name, sources)) {
        const mark = await markOf(join(root, path), before.get(path)).catch(() => null);
        if (mark !== null) tree.set(path, mark);
      }
    }
  }
  return tree;
}

/** As `readTree`, for one file in a folder and the files that it loads, which may be above the folder. */
export async function readFileAlone(
  root: string,
  name: string,
  sources: Sources,
  before: FileTree,
  onFolder: (path: string) => void,
): Promise<FileTree> {
  const tree = new Map<string, FileMark>();
  const folders = new Set<string>();
  const files = [name];
  for (let file = files.pop(); file !== undefined; file = files.pop()) {
    if (tree.has(file) || (file !== name && isIgnored(file.replace(ABOVE, ''), sources))) continue;
    const folder = join(root, dirname(file));
    if (!folders.has(folder)) onFolder(folder);
    folders.add(folder);
    const mark = await markOf(join(root, file), before.get(file)).catch(() => null);
    if (mark === null) continue;
    tree.set(file, mark);
    if (isCode(file, sources))
      files.push(...sources.localImports(file, await textOf(join(root, file), mark)));
  }
  return tree;
}

/** Start of a path that leaves the folder. */
const ABOVE = /^(?:\.\.[/\\])+/;

/** Text of a file; empty for a large file, which is data and loads nothing. */
async function textOf(file: string, { bytes }: FileMark): Promise<string> {
  return bytes <= MAX_HASHED_BYTES ? readFile(file, 'utf8').catch(() => '') : '';
}

/** Sorted paths of changed, new and removed files. */
export function changedFiles(before: FileTree, after: FileTree): string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => before.get(path)?.content !== after.get(path)?.content).sort();
}

async function markOf(file: string, before: FileMark | undefined): Promise<FileMark> {
  const stats = await stat(file); // before the content, so that a write in between is noticed by the next reading
  const { size: bytes, ctimeMs: statusChangedAtMs } = stats;
  if (before?.bytes === bytes && before.statusChangedAtMs === statusChangedAtMs) return before;
  return { bytes, statusChangedAtMs, content: await contentOf(file, stats) };
}

async function contentOf(file: string, { size, mtimeMs }: Stats): Promise<string> {
  return size > MAX_HASHED_BYTES ? `${size} bytes of ${mtimeMs}` : hash('sha1', await readFile(file));
}
