/** The dialects of each listener in their order of precedence, and the one that answers what none of them claims. */
import { banana } from './banana.js';
import type { Listener } from '../request/request-context.js';
import type { MetricsPage } from '../request/backend.js';
import type { DefaultDialect, Dialect } from './dialect.js';
import { gateway } from './gateway/gateway.js';
import { metricsDialect } from './metrics.js';
import { INFERENCE_API } from './mms/inference-api.js';
import { inferenceDialect, mmsInference } from './mms/inference.js';
import { MANAGEMENT_API } from './mms/management-api.js';
import { mmsManagement } from './mms/management.js';
import { mmsStyle } from './mms/answer-style.js';
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
  inOrder: [worded(banana), wordedGateway(), worded(potassium), mmsInference],
  default: mmsInference,
};

function worded(dialect: Dialect): Dialect {
  return { ...dialect, fail: mmsStyle.fail };
}

/** Its own clients, which only send `POST`, would take any other answer than theirs for a success. */
function wordedGateway(): Dialect {
  return {
    ...gateway,
    fail: (error, requestId, context) =>
      (context?.request.method === 'POST' ? gateway : mmsStyle).fail(error, requestId, context),
  };
}

/** What the listener of the management API speaks. */
export const MANAGEMENT_DIALECTS: Dialects = { inOrder: [mmsManagement], default: mmsManagement };

/** What a listener speaks that serves both: what manages a model goes before what calls it. */
export function withManagement({ inOrder, ...main }: Dialects): Dialects {
  const others = inOrder.map((dialect) => (dialect === mmsInference ? describesBoth : dialect));
  return { ...main, inOrder: [...MANAGEMENT_DIALECTS.inOrder, ...others] };
}

const describesBoth = inferenceDialect({
  ...INFERENCE_API,
  ...MANAGEMENT_API,
  '/': INFERENCE_API['/'] ?? {},
});

/** What decides who answers where. */
export interface Spoken {
  readonly isMmsMode: boolean;
  readonly isManagementShared: boolean;
  /** Null if nobody asks for them. */
  readonly metrics: MetricsPage | null;
  readonly areMetricsOnMain: boolean;
  /** Others than those of the main listener, to test one. */
  readonly main: Dialects | undefined;
}

/** The dialects of each listener; null for one that no server would open. */
export function dialectsOf({
  isMmsMode,
  isManagementShared,
  metrics,
  areMetricsOnMain,
  main = isMmsMode ? MMS_DIALECTS : MAIN_DIALECTS,
}: Spoken): Readonly<Record<Listener, Dialects | null>> {
  const both = isManagementShared ? withManagement(main) : main;
  if (metrics === null) return { main: both, management: MANAGEMENT_DIALECTS, metrics: null };
  const house = metricsDialect(metrics);
  const dialect: DefaultDialect = isMmsMode ? { ...house, fail: mmsStyle.fail } : house;
  return {
    main: areMetricsOnMain ? { ...both, inOrder: [dialect, ...both.inOrder] } : both,
    management: MANAGEMENT_DIALECTS,
    metrics: { inOrder: [dialect], default: dialect },
  };
}
