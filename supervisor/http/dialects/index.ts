/** The dialects of each listener in their order of precedence, and the one that answers what none of them claims. */
import { banana } from './banana.js';
import type { DefaultDialect, Dialect } from './dialect.js';
import { gateway } from './gateway/gateway.js';
import { mmsInference } from './mms/inference.js';
import { mmsVoice } from './mms/voice.js';
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

/** Without an app but with a model store: the house's own paths are there too, and their errors speak like all others. */
export const MMS_DIALECTS: Dialects = {
  inOrder: [{ ...banana, ...mmsVoice }, gateway, potassium, mmsInference],
  default: mmsInference,
};

/** What the listener of the management API speaks. */
export const MANAGEMENT_DIALECTS: Dialects = { inOrder: [], default: mmsInference };

/** What a listener speaks that serves both: what manages a model goes before what calls it. */
export function withManagement({ inOrder, ...main }: Dialects): Dialects {
  return { ...main, inOrder: [...MANAGEMENT_DIALECTS.inOrder, ...inOrder] };
}
