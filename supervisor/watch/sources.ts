/** Facts about source files that watching needs. Each runtime provides them; this folder knows no language. */
import { extname } from 'node:path';

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
