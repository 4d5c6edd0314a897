/** The formats of the worker in TypeScript, from their folder. */
import { readdirSync } from 'node:fs';
import type { BodyFormat } from '../../../worker/formats/body-format.js';

const FOLDER = new URL('../../../worker/formats/', import.meta.url);

/** Every file that exports `FORMAT`, by its name. */
export async function nodeFormats(): Promise<Record<string, BodyFormat>> {
  const formats: Record<string, BodyFormat> = {};
  for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.js'))) {
    const { FORMAT } = (await import(new URL(file, FOLDER).href)) as { readonly FORMAT?: BodyFormat };
    if (FORMAT !== undefined) formats[file.slice(0, -'.js'.length)] = FORMAT;
  }
  return formats;
}
