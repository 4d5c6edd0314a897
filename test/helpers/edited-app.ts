/** An app that its author is working on: real files in a folder of its own, saved as editors save. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { appFolder } from '../worker/app-folder.js';
import { ROOT } from './server.js';

/** A test, or `node:test` for the group of tests whose definition is running. */
export interface Ending {
  after(then: () => void): void;
}

export interface EditedApp {
  readonly folder: string;
  path(name: string): string;
  /** Writes a file in one step for watchers: it is written beside its place, then renamed. */
  save(name: string, text: string): void;
  remove(name: string): void;
}

/** Makes an app in a folder that is removed when the test ends, or the group of tests. */
export function editedApp(t: Ending, files: Readonly<Record<string, string>>): EditedApp {
  const folder = appFolder(t, files);
  const path = (name: string): string => join(folder, name);
  return {
    folder,
    path,
    save: (name, text) => {
      mkdirSync(dirname(path(name)), { recursive: true });
      writeFileSync(`${path(name)}~`, text);
      renameSync(`${path(name)}~`, path(name));
    },
    remove: (name) => rmSync(path(name), { recursive: true }),
  };
}

/** Module that apps in such a folder import to wait for cues. */
export const CUES_MODULE = `${ROOT}test/fixtures/apps/lib/cues.mjs`;

/** Path by which Potassium apps in such a folder import the package. */
export const PACKAGE = `${ROOT}dist/potassium.js`;
