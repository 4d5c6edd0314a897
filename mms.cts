/** `require('banana-serve/mms')`; see index.cts. */
import { runInThisContext } from 'node:vm';
import type * as Package from './mms.js' with { 'resolution-mode': 'import' };

export type * from './mms.js' with { 'resolution-mode': 'import' };

const loaded = (runInThisContext('process') as NodeJS.Process)
  .getBuiltinModule('module')
  .createRequire(__filename)('./mms.js') as typeof Package;

export const Context: typeof Package.Context = loaded.Context;
export type Context = Package.Context;
export const Dimension: typeof Package.Dimension = loaded.Dimension;
export type Dimension = Package.Dimension;
export const ModelHandler: typeof Package.ModelHandler = loaded.ModelHandler;
export type ModelHandler<
  Input = readonly Package.Item[],
  Output = readonly Package.ItemResult[],
> = Package.ModelHandler<Input, Output>;
export const PredictionException: typeof Package.PredictionException = loaded.PredictionException;
export type PredictionException = Package.PredictionException;
