/** `require('banana-serve/client')`; see index.cts. */
import { runInThisContext } from 'node:vm';
import type * as Package from './client.js' with { 'resolution-mode': 'import' };

export type * from './client.js' with { 'resolution-mode': 'import' };

const loaded = (runInThisContext('process') as NodeJS.Process)
  .getBuiltinModule('module')
  .createRequire(__filename)('./client.js') as typeof Package;

export const client: typeof Package.client = loaded.client;
export const ServeError: typeof Package.ServeError = loaded.ServeError;
export type ServeError = Package.ServeError;
