/** What has to be known of code to watch it. Each runtime says it of its own; nothing in this room knows a language. */
import { extname } from 'node:path';

export interface Sources {
  /** What people call what they are written in. */
  readonly languages: readonly string[];
  /** Extensions of their files. */
  readonly extensions: readonly string[];
  /** Names of folders in which no app has sources of its own: packages, and what builds and tests leave behind. */
  readonly foldersOfOthers: readonly string[];
  /**
   * Where the files may be that `text`, which is in `file`, loads: paths below the app's folder, or above it where `file`
   * leads there, several for each, of which most are not there. Read from the text, without running it.
   */
  localImports(file: string, text: string): string[];
}

/** Those of an app that may have parts in every language: a file imports as its extension says. */
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
