/** Builds the `Backend`: all that request handlers may use of the server. */
import { ServeError } from '../../protocol/errors.js';
import type { Backend } from '../http/request/backend.js';
import { UnroutedBodies } from '../dispatch/unrouted-bodies.js';
import { inviteBody } from '../http/socket/http-server.js';
import { isLastRequest } from '../http/socket/request-facts.js';
import { EVERY_ADDRESS, isUnixSocket } from '../options/address.js';
import type { ManagementPlan } from '../options/management.js';
import { HttpManagement } from './models/http-management.js';
import { modelReadiness, type Readiness } from '../status/readiness.js';
import type { ServerParts } from './parts.js';
import type { ServerStatus } from '../status/server-status.js';
import { readinessOf, serverStatus } from '../status/snapshot.js';

export function buildBackend(parts: ServerParts): Backend {
  const { plan, options, served, jobs, webhooks, unsent, answerCounts, log, ending } = parts;
  const { keys, management, managementKeys, isMmsMode, resolved, store, cwd } = plan;
  return {
    models: served.registry,
    modelManagement: new HttpManagement(served, { resolved, cwd, store, recent: answerCounts.recent }),
    options,
    jobs,
    webhooks,
    observer: answerCounts,
    unsent,
    posts: { count: 0 },
    replies: answerCounts.replies,
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
    readiness: (name) =>
      name === undefined ? readinessOf(served, ending.isDraining) : readinessOfModel(parts, name),
  };
}

export function statusOf(parts: ServerParts, showsWords: boolean): ServerStatus {
  const { facts, served, unsent, ending } = parts;
  return serverStatus(facts, served, unsent, readinessOf(served, ending.isDraining), showsWords);
}

/** @throws SERVE_MODEL_NOT_FOUND; it does not list the other models if callers need keys, because probes have none */
function readinessOfModel({ served, plan }: ServerParts, name: string): Readiness {
  const { registry } = served;
  const exists = [...registry.all()].some(({ spec }) => spec.name === name);
  if (!exists && plan.keys.required) throw new ServeError('SERVE_MODEL_NOT_FOUND');
  return modelReadiness(served.presenceOf(registry.find({ name })));
}

/** The address of the management API that its requests must name; null if it listens on every address or on a socket. */
function nameOf(management: ManagementPlan | null): string | null {
  if (management === null || isUnixSocket(management.port)) return null;
  return EVERY_ADDRESS.includes(management.host) ? null : management.host;
}
