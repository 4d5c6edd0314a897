/** The dialects of each listener in their order of precedence, and the one that answers what none of them claims. */
import { banana } from './banana.js';
import type { DefaultDialect, Dialect } from './dialect.js';
import { gateway } from './gateway/gateway.js';
import { mmsInference } from './mms/inference.js';
import { potassium } from './potassium/potassium.js';

export interface Dialects {
  /** The first that claims a request has it. */
  readonly inOrder: readonly Dialect[];
  readonly default: DefaultDialect;
}

/** The house dialect comes first: a route that the app has itself is the app's. */
export const MAIN_DIALECTS: Dialects = {
  inOrder: [banana, gateway, potassium, mmsInference],
  default: banana,
};
