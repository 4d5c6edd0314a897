/**
 * The layout of jobs in Redis, and the functions that all scripts share. Those that change a job are in `step-scripts.ts`, those that only look, or
 * see to all of them, in `look-scripts.ts`. Each is one step: it happens as a whole or not at all.
 *
 * Keys, all under `banana:`
 * - `jobs`, a hash: each job's bytes, whether its result was dropped, the hash of its idempotency key or `-`, its queue.
 * - `order`: ids in order of acceptance. `expires`: ids by the time at which they expire if they have not begun.
 * - `body:<id>`, `result:<id>`; `key:<hash>`: the id and the content of an idempotency key.
 * - `queues`; `bytes`: the sum of all jobs; `seq`: counts acceptances.
 * - `owed`: webhooks that are owed, `j<id>` of a job and `w<id>` of an app, by the time until which one server sends them.
 *   `hook:<id>`: a webhook of an app.
 * - `news`, a stream: new queues, and cancels of running jobs.
 *
 * All else is BullMQ's: its own scripts fetch a job and find those without a lock, as functions of ours. What ours write of its
 * layout a test compares with what its `Queue` writes.
 */
import { createHash } from 'node:crypto';
import { LEAST_JOB_BYTES } from '../job-rules.js';
import type { BullScripts } from './load-packages.js';
import { PREFIX } from './queues.js';

export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Names of the news. */
export const NEWS = `${PREFIX}:news`;

const SHARED = `
local P = '${PREFIX}:'
local LEAST = ${LEAST_JOB_BYTES}

-- A Redis whose memory is full refuses scripts at their first command that may take more. One that frees some, or keeps the
-- jobs of a server, begins with a command that takes none.
local function goOnIfFull() redis.call('DEL', P .. 'none') end

local function base(queue) return P .. queue .. ':' end

-- Its bytes, whether its result was dropped, its key, its queue; nothing for an unknown job.
local function entry(id)
  local found = redis.call('HGET', P .. 'jobs', id)
  if found then return string.match(found, '^(%d+) (%d) (%S+) (.*)$') end
end

-- Where BullMQ has a job; nothing for an unknown one.
local function placeOf(id)
  local _, _, _, queue = entry(id)
  return queue and base(queue)
end

-- The names of a queue's keys, for a script of BullMQ.
local function keysAt(at, names)
  local keys = {}
  for i, name in ipairs(names) do keys[i] = at .. name end
  return keys
end

local function note(id, was, bytes, dropped, key, queue)
  if bytes - was ~= 0 then redis.call('INCRBY', P .. 'bytes', bytes - was) end
  redis.call('HSET', P .. 'jobs', id, bytes .. ' ' .. dropped .. ' ' .. key .. ' ' .. queue)
end

local function tell(q, event, id, ...)
  redis.call('XADD', q .. 'events', 'MAXLEN', '~', 10000, '*', 'event', event, 'jobId', id, ...)
end

local function isOwed(id) return redis.call('ZSCORE', P .. 'owed', 'j' .. id) end

-- Where BullMQ looks for the next job: by priority, from 1 on, then in this order.
local function enqueue(q, id, priority)
  redis.call('ZADD', q .. 'prioritized', priority * 4294967296 + redis.call('INCR', q .. 'pc') % 4294967296, id)
end

-- Where BullMQ keeps what is due later: of one millisecond in this order.
local function delay(q, id, at)
  local first, last = at * 4096, at * 4096 + 4095
  local top = redis.call('ZREVRANGEBYSCORE', q .. 'delayed', last, first, 'WITHSCORES', 'LIMIT', 0, 1)[2]
  redis.call('ZADD', q .. 'delayed', top and math.min(top + 1, last) or first, id)
  tell(q, 'delayed', id, 'delay', at)
end

local function waits(at, id)
  return redis.call('ZSCORE', at .. 'prioritized', id) or redis.call('ZSCORE', at .. 'delayed', id)
end

local function read(id)
  local _, dropped, _, queue = entry(id)
  if not queue then return {} end
  local at = base(queue)
  local found = redis.call('HMGET', at .. id, 'data', 'processedOn', 'pb', 'progress', 'can', 'ats', 'stc')
  if not found[1] then return {} end
  local answer = { id, queue, dropped, waits(at, id) and '1' or '', isOwed(id) and '1' or '' }
  for i = 1, 7 do answer[5 + i] = found[i] or '' end
  return answer
end

-- All that is kept of a job goes together.
local function drop(id)
  local bytes, _, key, queue = entry(id)
  if not bytes then return end
  local at = base(queue)
  for _, set in ipairs({ 'completed', 'failed', 'prioritized', 'delayed' }) do redis.call('ZREM', at .. set, id) end
  redis.call('DEL', at .. id, P .. 'body:' .. id, P .. 'result:' .. id)
  redis.call('HDEL', P .. 'jobs', id)
  redis.call('ZREM', P .. 'order', id)
  redis.call('ZREM', P .. 'expires', id)
  redis.call('INCRBY', P .. 'bytes', -bytes)
  local known = key ~= '-' and redis.call('GET', P .. 'key:' .. key)
  if known and string.match(known, '^(.-)\\n') == id then redis.call('DEL', P .. 'key:' .. key) end
end

-- The jobs that ended first, at most so many of each queue, which owe no webhook; and whether these are all.
local function ended(most)
  local found, isAll = {}, true
  for _, queue in ipairs(redis.call('SMEMBERS', P .. 'queues')) do
    for _, set in ipairs({ 'completed', 'failed' }) do
      local ids = redis.call('ZRANGE', base(queue) .. set, 0, most - 1, 'WITHSCORES')
      isAll = isAll and #ids < 2 * most
      for i = 1, #ids, 2 do
        if not isOwed(ids[i]) then found[#found + 1] = { id = ids[i], at = tonumber(ids[i + 1]) } end
      end
    end
  end
  table.sort(found, function(a, b) return a.at < b.at end)
  return found, isAll
end

-- Drops ended jobs, the oldest first, until so many more bytes fit; none if all of them do not do. It looks at no more of them
-- than that many bytes may need: where more must go, after a start with less room, the next call goes on.
local function makeRoom(more, max)
  if more <= 0 then return true end
  local over = tonumber(redis.call('GET', P .. 'bytes') or '0') + more - max
  if over <= 0 then return true end
  local found, isAll = ended(math.max(2000, math.ceil(more / LEAST)))
  local going, freed = {}, 0
  for _, one in ipairs(found) do
    if freed >= over then break end
    going[#going + 1] = one.id
    freed = freed + (entry(one.id) or 0)
  end
  if freed < over and isAll then return false end
  for _, id in ipairs(going) do drop(id) end
  return freed >= over
end

-- It waits for its first begin.
local function hasNotBegun(id)
  local at = placeOf(id)
  return at and waits(at, id) and not redis.call('HGET', at .. id, 'atm')
end

local function hasPassed(id, now, retention)
  local finished = redis.call('HGET', placeOf(id) .. id, 'finishedOn')
  return finished and tonumber(finished) + retention <= tonumber(now) and not isOwed(id)
end
`;

/** `bull`: scripts of BullMQ that it calls. */
export function script(body: string, bull: Partial<BullScripts> = {}): Script {
  const functions = Object.entries(bull).map(([name, { content }]) => asFunction(name, content));
  const text = [SHARED, ...functions, body].join('\n');
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** A script is a block, and its KEYS and ARGV are names like others. */
function asFunction(name: string, content: string): string {
  return `local function ${name}(KEYS, ARGV)\n${content}\nend`;
}
