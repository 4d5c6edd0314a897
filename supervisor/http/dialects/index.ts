/**
 * Lists the dialects of each listener in order of precedence, and the one that answers requests which no dialect
 * claims.
 */
import { banana } from './banana.js';
import type { Listener } from '../request/request-context.js';
import type { MetricsPage, ServedPage } from '../request/backend.js';
import type { DefaultDialect, Dialect } from './dialect.js';
import { gateway } from './gateway/gateway.js';
import { metricsDialect } from './metrics.js';
import { INFERENCE_API } from './mms/inference-api.js';
import { inferenceDialect, mmsInference } from './mms/inference.js';
import { MANAGEMENT_API } from './mms/management-api.js';
import { mmsManagement } from './mms/management.js';
import { mmsStyle } from './mms/answer-style.js';
import { pageDialect } from './page.js';
import { potassium } from './potassium/potassium.js';

export interface Dialects {
  /** The first that claims a request gets it; guesses come last. */
  readonly inOrder: readonly Dialect[];
  readonly default: DefaultDialect;
}

/** The house dialect comes first: a route of the app takes precedence. */
export const MAIN_DIALECTS: Dialects = {
  inOrder: [banana, gateway, potassium, mmsInference],
  default: banana,
};

/**
 * For a server with a model store and no app: the house's own paths are there too, with errors in the form of Multi
 * Model Server.
 */
export const MMS_DIALECTS: Dialects = {
  inOrder: [withMmsErrors(banana), gatewayWithMmsErrors(), withMmsErrors(potassium), mmsInference],
  default: mmsInference,
};

function withMmsErrors(dialect: Dialect): Dialect {
  return { ...dialect, fail: mmsStyle.fail };
}

/** The gateway's own clients, which only send `POST`, would take an error in any other form for a success. */
function gatewayWithMmsErrors(): Dialect {
  return {
    ...gateway,
    fail: (error, requestId, context) =>
      (context?.request.method === 'POST' ? gateway : mmsStyle).fail(error, requestId, context),
  };
}

/** The dialects of the management API's own listener. */
export const MANAGEMENT_DIALECTS: Dialects = { inOrder: [mmsManagement], default: mmsManagement };

/** Adds the management API to a listener's dialects: managing a model takes precedence over calling it. */
export function withManagement({ inOrder, ...main }: Dialects): Dialects {
  const others = inOrder.map((dialect) => (dialect === mmsInference ? inferenceAndManagement : dialect));
  return { ...main, inOrder: [...MANAGEMENT_DIALECTS.inOrder, ...others] };
}

const inferenceAndManagement = inferenceDialect({
  ...INFERENCE_API,
  ...MANAGEMENT_API,
  '/': INFERENCE_API['/'] ?? {},
});

/** The settings from which the dialects of each listener follow. */
export interface DialectSettings {
  readonly isMmsMode: boolean;
  readonly isManagementShared: boolean;
  /** Null if metrics are switched off. */
  readonly metrics: MetricsPage | null;
  readonly areMetricsOnMain: boolean;
  /** Null: there is no page. */
  readonly page: ServedPage | null;
  /** Replaces the dialects of the main listener, for tests. */
  readonly main: Dialects | undefined;
}

/** Returns the dialects of each listener; null for a listener that is not opened. */
export function dialectsOf({
  isMmsMode,
  isManagementShared,
  metrics,
  areMetricsOnMain,
  page,
  main = isMmsMode ? MMS_DIALECTS : MAIN_DIALECTS,
}: DialectSettings): Readonly<Record<Listener, Dialects | null>> {
  const inStyle = <D extends Dialect>(dialect: D): D =>
    isMmsMode ? { ...dialect, fail: mmsStyle.fail } : dialect;
  const without = isManagementShared ? withManagement(main) : main;
  const both =
    page === null ? without : { ...without, inOrder: [inStyle(pageDialect(page)), ...without.inOrder] };
  if (metrics === null) return { main: both, management: MANAGEMENT_DIALECTS, metrics: null };
  const dialect: DefaultDialect = inStyle(metricsDialect(metrics));
  return {
    main: areMetricsOnMain ? { ...both, inOrder: [dialect, ...both.inOrder] } : both,
    management: MANAGEMENT_DIALECTS,
    metrics: { inOrder: [dialect], default: dialect },
  };
}
