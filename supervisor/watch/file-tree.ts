/**
 * Reads the code and JSON files below a folder, and tells in which of them two such readings differ.
 * Told apart by content: a save that changes nothing is no change, and an app that writes the same file whenever it
 * starts does not start itself again.
 */
import { hash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { readFile, readdir, stat } from 'node:fs/promises';
import { dirname, extname, join, sep } from 'node:path';
import type { Sources } from './sources.js';

interface FileMark {
  readonly bytes: number;
  /** Every write moves it, also one that sets the time of modification back. */
  readonly statusChangedAtMs: number;
  readonly content: string;
}

/** Files by their path below the folder. */
export type FileTree = ReadonlyMap<string, FileMark>;

/** Labels, settings and the like: every app may read them. */
const DATA_EXTENSION = '.json';

/** The server's own options, which are read at its start only. */
const OPTIONS_FILE = 'banana.json';

/** Larger ones are data: reading them at every start and change would take longer than it may. */
const MAX_HASHED_BYTES = 1024 * 1024;

/** Whether nothing at or below this path, taken from the folder on, counts. */
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
 * Reads the tree; what seems untouched since `before` is not read again. `onFolder` is called for every folder before
 * it is read, so that what changes from then on can be noticed. What vanishes meanwhile is left out.
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

/** As `readTree`, of one file in a folder and of what it loads by relative paths, which may lie above the folder. */
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

/** How a path begins that leads out of the folder. */
const ABOVE = /^(?:\.\.[/\\])+/;

/** Empty where it is so large that it is data, which loads nothing. */
async function textOf(file: string, { bytes }: FileMark): Promise<string> {
  return bytes <= MAX_HASHED_BYTES ? readFile(file, 'utf8').catch(() => '') : '';
}

/** Changed, new and removed files, in order. */
export function changedFiles(before: FileTree, after: FileTree): string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => before.get(path)?.content !== after.get(path)?.content).sort();
}

async function markOf(file: string, before: FileMark | undefined): Promise<FileMark> {
  const stats = await stat(file); // first: a write that comes between is seen in the next reading
  const { size: bytes, ctimeMs: statusChangedAtMs } = stats;
  if (before?.bytes === bytes && before.statusChangedAtMs === statusChangedAtMs) return before;
  return { bytes, statusChangedAtMs, content: await contentOf(file, stats) };
}

async function contentOf(file: string, { size, mtimeMs }: Stats): Promise<string> {
  return size > MAX_HASHED_BYTES ? `${size} bytes of ${mtimeMs}` : hash('sha1', await readFile(file));
}
