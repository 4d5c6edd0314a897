/** The paths at which a route can be called, in any form of input: each dialect names its own. */
import type { Route, Task } from '../../../protocol/wire/messages.js';
import type { FullModelRef } from '../../options/model-name.js';

/** A route of a model, with the facts that decide where it can be called. */
export interface CalledRoute {
  readonly model: FullModelRef;
  readonly route: Pick<Route, 'path' | 'kind'>;
  /** Whether the model answers at its app's own paths. */
  readonly isDefault: boolean;
  /** Whether calls that name no version get this one. */
  readonly isDefaultVersion: boolean;
  /** Whether a call that names only the model gets this route. */
  readonly isMain: boolean;
  /** The task of the model. */
  readonly task?: Task | undefined;
}

/** A path at which a route can be called, as declared. */
export interface CallPath {
  readonly path: string;
  readonly isDeprecated?: boolean;
}

/** A percent-encoded path and the name of its dialect. */
export interface DialectPath extends Required<CallPath> {
  readonly dialect: string;
}

/** Returns the paths in all dialects, in the order of the dialects. */
export type FindCallPaths = (called: CalledRoute) => DialectPath[];
