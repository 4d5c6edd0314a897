/** Names of models by the names of their files and folders in a store. */
import { isModelName } from '../../options/model-name.js';

/** The name by which a model of this entry is loaded. */
export function nameOfEntry(entry: string): string {
  const stem = stemOf(entry);
  return isModelName(stem) ? stem : underscored(stem);
}

/** The entry whose model is loaded by this name: the one of exactly this name before others; null if there is none. */
export function namedEntry(entries: readonly string[], name: string): string | null {
  for (const nameOf of [
    (entry: string) => entry,
    stemOf,
    nameOfEntry,
    (entry: string) => underscored(stemOf(entry)),
  ]) {
    const found = entries.find((entry) => nameOf(entry) === name);
    if (found !== undefined) return found;
  }
  return null;
}

/** A folder may have a dot in its name too; it is found by its whole name. */
function stemOf(entry: string): string {
  return entry.replace(/\.(?:tar\.gz|[^.]+)$/, '');
}

/** The name under which a store without the name in a manifest has it at the start. */
function underscored(stem: string): string {
  return stem.replace(/\W/g, '_').slice(0, 128);
}
