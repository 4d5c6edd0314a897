/** All conversations: they hold for every worker, whatever its language. */
import type { Conversation } from '../conversation.js';
import { BATCHES, STREAMS } from './batches.js';
import { CALLS, CANCELS, TOGETHER } from './calls.js';
import { INSTANCES } from './instances.js';
import { REPORTS } from './reports.js';
import { SOCKETS } from './sockets.js';
import { BROKEN_PROTOCOLS, ENDS, FAILED_STARTS, STARTS } from './starts-and-ends.js';

export const CONVERSATIONS: readonly Conversation[] = [
  ...STARTS,
  ...FAILED_STARTS,
  ...CALLS,
  ...CANCELS,
  ...TOGETHER,
  ...BATCHES,
  ...STREAMS,
  ...INSTANCES,
  ...REPORTS,
  ...SOCKETS,
  ...ENDS,
  ...BROKEN_PROTOCOLS,
];
