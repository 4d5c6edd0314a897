/** Settings of single models of the store, by name and version. A registration's own values take precedence. */
import type { FullModelRef } from './model-name.js';
import type { OptionSource } from './resolve.js';

export interface ModelSetting {
  readonly source: OptionSource;
  /** Least and most workers; null if not set. */
  readonly min: number | null;
  readonly max: number | null;
}

export interface ModelSettings {
  /** Null if the model has none. */
  of(ref: FullModelRef): ModelSetting | null;
}

/** Bounds of the workers of a model that would have `count`; null if nothing is set for it. */
export function boundsOf(setting: ModelSetting | null, count: number): { min: number; max: number } | null {
  if (setting === null || (setting.min ?? setting.max) === null) return null;
  const min = setting.min ?? Math.min(count, setting.max as number);
  return { min, max: setting.max ?? min };
}
