/** The numbers of workers in settings of single models of the store. */
import type { ModelSetting } from './resolve.js';

/** Bounds of the workers of a model that would have `count`; null if nothing is set for it. */
export function boundsOf(setting: ModelSetting | null, count: number): { min: number; max: number } | null {
  if (setting === null || (setting.min ?? setting.max) === null) return null;
  const min = setting.min ?? Math.min(count, setting.max as number);
  return { min, max: setting.max ?? min };
}
