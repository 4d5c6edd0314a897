/** Builds the `Backend`: all that request handlers may use of the server. */
import type { Backend } from '../http/request/backend.js';
import { UnroutedBodies } from '../dispatch/unrouted-bodies.js';
import { inviteBody } from '../http/socket/http-server.js';
import { isLastRequest } from '../http/socket/request-facts.js';
import { EVERY_ADDRESS, isUnixSocket } from '../options/address.js';
import type { ModelRef } from '../models/models.js';
import type { ManagementPlan } from '../options/listeners.js';
import { HttpManagement } from './models/http-management.js';
import { modelReadiness, type Readiness } from '../status/readiness.js';
import type { ServerParts } from './parts.js';
import type { ServerStatus } from '../status/server-status.js';
import { readinessOf, serverStatus } from '../status/snapshot.js';

export function buildBackend(parts: ServerParts): Backend {
  const { plan, options, served, jobs, webhooks, unsent, answerCounts, metrics, log, ending } = parts;
  const { keys, management, managementKeys, isMmsMode, resolved, store, cwd, devices } = plan;
  const recent = answerCounts.recent;
  return {
    models: served.registry,
    modelManagement: new HttpManagement(served, { resolved, cwd, store, devices, recent }),
    options,
    jobs,
    webhooks,
    observer: answerCounts,
    unsent,
    posts: { count: 0 },
    replies: answerCounts.replies,
    callsOf(model) {
      answerCounts.tell(metrics.calls);
      return metrics.calls.of(model).figures();
    },
    unroutedBodies: new UnroutedBodies(),
    keys,
    management: { keys: managementKeys, host: nameOf(management) },
    isMmsMode,
    page: parts.page,
    log,
    hasGpu: plan.models.some(({ placements }) => placements.some(({ gpu }) => gpu !== null)),
    stopping: () => ending.lastReplies,
    closing: (request) => ending.lastReplies && isLastRequest(request),
    inviteBody,
    status: (showsWords) => statusOf(parts, showsWords),
    readiness: (ref) =>
      ref === undefined ? readinessOf(served, ending.isDraining, jobs) : readinessOfModel(parts, ref),
  };
}

export function statusOf(parts: ServerParts, showsWords: boolean): ServerStatus {
  const { facts, served, jobs, ending } = parts;
  return serverStatus(facts, served, parts, readinessOf(served, ending.isDraining, jobs), showsWords);
}

/** @throws as `Models.find` */
function readinessOfModel({ served }: ServerParts, ref: ModelRef): Readiness {
  return modelReadiness(served.presenceOf(served.registry.find(ref)));
}

/** The address of the management API that its requests must name; null if it listens on every address or on a socket. */
function nameOf(management: ManagementPlan | null): string | null {
  if (management === null || isUnixSocket(management.port)) return null;
  return EVERY_ADDRESS.includes(management.host) ? null : management.host;
}
