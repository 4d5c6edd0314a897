/**
 * The Lua scripts beside BullMQ's own. Each is one step: it happens as a whole or not at all. `move`, `held`, `count` and what
 * reads a job know how BullMQ lays out a queue, which a test holds to the pinned version.
 *
 * Keys, all under `banana:`
 * - `jobs`, a hash: each job's bytes, whether its result was dropped, the hash of its idempotency key or `-`, its queue.
 * - `order`: ids in order of acceptance. `expires`: ids by the time at which they expire if they have not begun.
 *   `reserved`: ids by the time at which they were reserved, until a clean finds that BullMQ has them.
 * - `body:<id>`, `result:<id>`; `key:<hash>`: the id and the content of an idempotency key.
 * - `queues`; `bytes`: the sum of all jobs; `seq`: counts acceptances.
 * - `owed`: webhooks that are owed, `j<id>` of a job and `w<id>` of an app, by the time until which one server sends them.
 *   `hook:<id>`: a webhook of an app.
 * - `news`, a stream: new queues, and cancels of running jobs.
 */
import { createHash } from 'node:crypto';
import { LEAST_JOB_BYTES } from '../job-bytes.js';
import { PREFIX } from './queue-name.js';

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

local function note(id, bytes, dropped, key, queue)
  redis.call('INCRBY', P .. 'bytes', bytes - (entry(id) or 0))
  redis.call('HSET', P .. 'jobs', id, bytes .. ' ' .. dropped .. ' ' .. key .. ' ' .. queue)
end

local function isOwed(id) return redis.call('ZSCORE', P .. 'owed', 'j' .. id) end

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

-- Drops ended jobs, the oldest first, until so many more bytes fit; none if all of them do not do. It looks at so many at once
-- that nobody waits for it: where more have ended, the next call goes on.
local function makeRoom(more, max)
  local over = tonumber(redis.call('GET', P .. 'bytes') or '0') + more - max
  if over <= 0 then return true end
  local found, isAll = ended(2000)
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

local function hasPassed(id, now, retention)
  local _, _, _, queue = entry(id)
  local finished = redis.call('HGET', base(queue) .. id, 'finishedOn')
  return finished and tonumber(finished) + retention <= tonumber(now) and not isOwed(id)
end
`;

/**
 * id, queue, bytes, most bytes, key, its content, when it expires, now, retention, ms for which its body is kept, body: keeps
 * a place for a job, before BullMQ gets it. A key whose job BullMQ does not have yet is taken again, by its id, in the same
 * queue only: in two it would run twice.
 */
const RESERVE = `
local id, queue, bytes, key = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[5]
local known = key ~= '-' and redis.call('GET', P .. 'key:' .. key)
if known then
  local knownId, content = string.match(known, '^(.-)\\n(.*)$')
  if not entry(knownId) then known = nil
  elseif hasPassed(knownId, ARGV[8], ARGV[9]) then drop(knownId)
  elseif content ~= ARGV[6] then return { 'conflict' }
  else
    local found = read(knownId)
    if #found > 0 then return { 'known', found } end
    local _, _, _, its = entry(knownId)
    return { its == queue and 'reserved' or 'busy', knownId }
  end
end
if not makeRoom(bytes, tonumber(ARGV[4])) then return { 'full' } end
note(id, bytes, 0, key, queue)
redis.call('ZADD', P .. 'order', 'NX', redis.call('INCR', P .. 'seq'), id)
redis.call('ZADD', P .. 'expires', ARGV[7], id)
redis.call('ZADD', P .. 'reserved', ARGV[8], id)
if key ~= '-' then redis.call('SET', P .. 'key:' .. key, id .. '\\n' .. ARGV[6]) end
if ARGV[11] ~= '' then redis.call('SET', P .. 'body:' .. id, ARGV[11], 'PX', ARGV[10]) end
if redis.call('SADD', P .. 'queues', queue) == 1 then
  redis.call('XADD', '${NEWS}', 'MAXLEN', '~', 1000, '*', 'queue', queue)
end
return { 'reserved', id }
`;

/** id, now, retention: a job; nothing if it is unknown or its time is over. */
const READ = `
local id = ARGV[1]
if not entry(id) or hasPassed(id, ARGV[2], ARGV[3]) then return {} end
return read(id)
`;

/**
 * state or empty, limit, from or empty, now, retention: jobs, the newest first, the order from which the next ones are, and
 * whether this page may have more. Looks at the jobs that BullMQ has in sets of that state, if these are few; else at a
 * thousand of all.
 */
const LIST = `
local state, limit, from = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]) or math.huge
local FEW, PAGE = 2000, 1000
local SETS = { queued = { 'prioritized', 'delayed' }, running = { 'active', 'wait' }, succeeded = { 'completed' } }

local function few()
  local ids = {}
  for _, queue in ipairs(redis.call('SMEMBERS', P .. 'queues')) do
    for _, set in ipairs(SETS[state] or { 'failed' }) do
      local found = redis.call(state == 'running' and 'LRANGE' or 'ZRANGE', base(queue) .. set, 0, FEW)
      if #ids + #found > FEW then return nil end
      for _, id in ipairs(found) do
        ids[#ids + 1] = { id = id, order = tonumber(redis.call('ZSCORE', P .. 'order', id) or '0') }
      end
    end
  end
  table.sort(ids, function(a, b) return a.order > b.order end)
  return ids
end

local function page()
  local ids, top = {}, from == math.huge and '+inf' or from
  local found = redis.call('ZREVRANGEBYSCORE', P .. 'order', top, '-inf', 'WITHSCORES', 'LIMIT', 0, PAGE)
  for i = 1, #found, 2 do ids[#ids + 1] = { id = found[i], order = tonumber(found[i + 1]) } end
  return ids
end

local function stateOf(id)
  local _, _, _, queue = entry(id)
  local known = queue and redis.call('HMGET', base(queue) .. id, 'st', 'can') or {}
  if known[2] and (known[1] == 'failed' or known[1] == 'lost') then return 'cancelled' end
  return known[1] or queue and (waits(base(queue), id) and 'queued' or 'running')
end

local ids, found, more = state ~= '' and few(), {}, ''
if not ids then
  ids = page()
  more = #ids == PAGE and tostring(ids[PAGE].order - 1) or ''
end
for _, one in ipairs(ids) do
  if one.order <= from and (state == '' or stateOf(one.id) == state) and not hasPassed(one.id, ARGV[4], ARGV[5]) then
    local job = read(one.id)
    if #job > 0 and #found == limit then return { found, tostring(one.order), '' } end
    if #job > 0 then found[#found + 1] = job end
  end
end
return { found, more, more }
`;

/**
 * id, token or empty, fetches, to, data, state, reason, at: changes a job that waits, or, with its token, one that runs here.
 * It goes to the \`front\` of its priority, where it may expire at that time; is tried again \`later\`; goes \`back\` to those that
 * have ended, from where a tool has taken it; or ends, and its webhook is this server's until a time, or it has none.
 */
const MOVE = `
goOnIfFull()
local id, token, to, at = ARGV[1], ARGV[2], ARGV[4], ARGV[8]
local _, dropped, key, queue = entry(id)
if not queue then return 'gone' end
local q = base(queue)
local job, done = q .. id, 'done'
if token ~= '' then
  if redis.call('GET', job .. ':lock') ~= token then return 'gone' end
  if to == 'front' and redis.call('HGET', job, 'can') then return 'cancelled' end
  redis.call('DEL', job .. ':lock')
  redis.call('SREM', q .. 'stalled', id)
  if redis.call('LREM', q .. 'active', -1, id) == 0 then return 'gone' end
else
  if (redis.call('HGET', job, 'ats') or '') ~= ARGV[3] then return 'moved' end
  local isLoss = to == 'later' or ARGV[6] == 'lost' or ARGV[6] == 'failed'
  if isLoss and to ~= 'back' and redis.call('HGET', job, 'can') then return 'moved' end
  if redis.call('ZREM', q .. 'prioritized', id) == 1 then done = 'was due'
  elseif redis.call('ZREM', q .. 'delayed', id) + redis.call('LREM', q .. 'wait', 1, id) == 0 then return 'gone' end
end
redis.call('HSET', job, 'data', ARGV[5])
if to == 'front' then
  redis.call('ZADD', q .. 'prioritized', math.max(1, redis.call('HGET', job, 'priority')) * 4294967296, id)
  redis.call('XADD', q .. 'events', '*', 'event', 'waiting', 'jobId', id)
  if at ~= '' then redis.call('ZADD', P .. 'expires', at, id) end
elseif to == 'back' then
  redis.call('HSET', job, 'finishedOn', at)
  redis.call('ZADD', q .. (ARGV[6] == 'succeeded' and 'completed' or 'failed'), at, id)
elseif to == 'later' then
  redis.call('HINCRBY', job, 'atm', 1)
  redis.call('ZADD', q .. 'delayed', tonumber(at) * 4096, id)
  redis.call('XADD', q .. 'events', '*', 'event', 'delayed', 'jobId', id, 'delay', at)
else
  redis.call('HSET', job, 'st', ARGV[6], 'failedReason', ARGV[7], 'finishedOn', at)
  redis.call('ZADD', q .. 'failed', at, id)
  redis.call('XADD', q .. 'events', '*', 'event', 'failed', 'jobId', id, 'failedReason', ARGV[7], 'prev', 'waiting')
  redis.call('DEL', P .. 'body:' .. id, P .. 'result:' .. id)
  note(id, LEAST, 0, key, queue)
  if ARGV[9] ~= '' then redis.call('ZADD', P .. 'owed', ARGV[9], 'j' .. id) end
end
return done
`;

/** id: a running job is noted as cancelled. Answers where it is: running, waiting or ended. */
const CANCEL = `
local id = ARGV[1]
local _, _, _, queue = entry(id)
if not queue or redis.call('HEXISTS', base(queue) .. id, 'st') == 1 then return 'ended' end
if waits(base(queue), id) then return 'waiting' end
redis.call('HSET', base(queue) .. id, 'can', '1')
redis.call('XADD', '${NEWS}', 'MAXLEN', '~', 1000, '*', 'cancel', id)
return 'running'
`;

/**
 * id, token, what its result counts for or empty, most bytes, ms for which it is kept, until when its webhook is this server's
 * or empty, result: makes room for the result of a job that is about to end, and keeps it. Answers 1 if it is kept.
 */
const KEEP = `
goOnIfFull()
local id, want = ARGV[1], ARGV[3]
local bytes, _, key, queue = entry(id)
if not bytes or redis.call('GET', base(queue) .. id .. ':lock') ~= ARGV[2] then return 0 end
local isKept = want ~= '' and makeRoom(want - bytes, tonumber(ARGV[4]))
if isKept then redis.call('SET', P .. 'result:' .. id, ARGV[7], 'PX', ARGV[5]) end
note(id, isKept and want or LEAST, isKept and 0 or 1, key, queue)
if ARGV[6] ~= '' then redis.call('ZADD', P .. 'owed', ARGV[6], 'j' .. id) end
return isKept and 1 or 0
`;

/**
 * ms of a lock; id, token and worker of each job that a server runs: renews the locks. One that has expired, because Redis
 * was away, is set again while the job is active and was fetched by that worker: BullMQ would only renew it. Answers for
 * each: \`gone\`, \`cancelled\`, or empty.
 */
const HELD = `
goOnIfFull()
local said = {}
for i = 2, #ARGV, 3 do
  local id, token = ARGV[i], ARGV[i + 1]
  local _, _, _, queue = entry(id)
  local at = queue and base(queue)
  local lock = queue and redis.call('GET', at .. id .. ':lock')
  local known = queue and redis.call('HMGET', at .. id, 'pb', 'can')
  if queue and (lock == token or not lock and known[1] == ARGV[i + 2] and redis.call('LPOS', at .. 'active', id)) then
    redis.call('SET', at .. id .. ':lock', token, 'PX', ARGV[1])
    redis.call('SREM', at .. 'stalled', id)
    said[#said + 1] = known[2] and 'cancelled' or ''
  else
    said[#said + 1] = 'gone'
  end
end
return said
`;

/** worker: the active jobs that it has fetched, each with its lock. */
const FETCHED = `
local found = {}
for _, queue in ipairs(redis.call('SMEMBERS', P .. 'queues')) do
  for _, id in ipairs(redis.call('LRANGE', base(queue) .. 'active', 0, -1)) do
    local job = base(queue) .. id
    if redis.call('HGET', job, 'pb') == ARGV[1] then
      found[#found + 1] = { id, redis.call('GET', job .. ':lock') or '' }
    end
  end
end
return found
`;

/** queues: which of them has the first job, from 1 on; 0 if all are empty. */
const HEADS = `
local best, bestRank, bestOrder = 0, 0, 0
for i, queue in ipairs(ARGV) do
  local at = base(queue)
  local id = redis.call('LINDEX', at .. 'wait', -1) or redis.call('ZRANGE', at .. 'prioritized', 0, 0)[1]
  if id then
    local rank = tonumber(redis.call('HGET', at .. id, 'priority') or '0')
    local order = tonumber(redis.call('ZSCORE', P .. 'order', id) or '0')
    if best == 0 or rank < bestRank or (rank == bestRank and order < bestOrder) then
      best, bestRank, bestOrder = i, rank, order
    end
  end
end
return best
`;

/**
 * now, ms between two cleans, retention, most expired ones: what a server looks at each second. One of them cleans. Answers the due jobs, the next
 * due time, the jobs without a server and the active ones of each queue; ids that have expired, and when the next one does; the time of Redis.
 */
const LOOK = `
goOnIfFull()
-- A job that is due waits, as BullMQ lets it wait at a fetch: it stays so if the clock is set back.
local function promote(at, now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', at .. 'delayed', '-inf', (now + 1) * 4096 - 1, 'LIMIT', 0, 1000)) do
    local rank = math.max(1, redis.call('HGET', at .. id, 'priority') or 1)
    redis.call('ZREM', at .. 'delayed', id)
    redis.call('ZADD', at .. 'prioritized', rank * 4294967296 + redis.call('INCR', at .. 'pc') % 4294967296, id)
    redis.call('HSET', at .. id, 'delay', 0)
    redis.call('XADD', at .. 'events', '*', 'event', 'waiting', 'jobId', id, 'prev', 'delayed')
  end
end
-- One that BullMQ never got, or that somebody has removed by its tools.
local function dropIfGone(id)
  local _, _, _, queue = entry(id)
  if queue and redis.call('EXISTS', base(queue) .. id) == 0 then drop(id) end
end
local now = tonumber(ARGV[1])
local queues = {}
for _, queue in ipairs(redis.call('SMEMBERS', P .. 'queues')) do
  local at = base(queue)
  promote(at, now)
  local due = redis.call('ZCARD', at .. 'prioritized')
  local later = redis.call('ZRANGE', at .. 'delayed', 0, 0, 'WITHSCORES')
  local stalled = redis.call('LRANGE', at .. 'wait', 0, -1)
  queues[#queues + 1] = { queue, due, later[2] and tostring(later[2] / 4096) or '', stalled, redis.call('LLEN', at .. 'active') }
end
local over = redis.call('ZRANGEBYSCORE', P .. 'expires', '-inf', now, 'LIMIT', 0, ARGV[4])
local next = redis.call('ZRANGEBYSCORE', P .. 'expires', '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if redis.call('SET', P .. 'clean', '1', 'NX', 'PX', ARGV[2]) then
  local left = 1000
  for _, one in ipairs(queues) do
    local q, size = base(one[1]), 0
    for _, set in ipairs({ 'completed', 'failed' }) do
      local old = redis.call('ZRANGEBYSCORE', q .. set, '-inf', now - ARGV[3], 'LIMIT', 0, left)
      left = left - #old
      for _, id in ipairs(old) do
        if not isOwed(id) then drop(id) end
      end
      size = size + redis.call('ZCARD', q .. set)
    end
    local isEmpty = size + one[2] + #one[4] + one[5] == 0 and one[3] == ''
    if isEmpty and redis.call('ZCARD', P .. 'reserved') == 0 then
      redis.call('SREM', P .. 'queues', one[1])
      for _, key in ipairs({ 'events', 'meta', 'id', 'pc', 'marker', 'stalled', 'stalled-check' }) do
        redis.call('DEL', q .. key)
      end
    end
  end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'reserved', '-inf', now - 60000, 'LIMIT', 0, 10000)) do
    redis.call('ZREM', P .. 'reserved', id)
    dropIfGone(id)
  end
  for _, id in ipairs(redis.call('HRANDFIELD', P .. 'jobs', 2)) do
    if not redis.call('ZSCORE', P .. 'reserved', id) then dropIfGone(id) end
  end
end
return { queues, over, next[2] or '', redis.call('TIME') }
`;

/** id: it was not to be expired, unless it waits for its first begin by now. */
const KEEP_ON = `
local _, _, _, queue = entry(ARGV[1])
if queue and waits(base(queue), ARGV[1]) and redis.call('HGET', base(queue) .. ARGV[1], 'atm') == false then return 0 end
return redis.call('ZREM', P .. 'expires', ARGV[1])
`;

/** id: forgets a job that has not begun. */
const WITHDRAW = `
local _, _, _, queue = entry(ARGV[1])
if queue and waits(base(queue), ARGV[1]) and redis.call('HGET', base(queue) .. ARGV[1], 'atm') == false then drop(ARGV[1]) end
return 0
`;

/** now, until, limit: names of owed webhooks that no server sends; this one does until then. */
const TAKE_WEBHOOKS = `
goOnIfFull()
local names = redis.call('ZRANGEBYSCORE', P .. 'owed', '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, name in ipairs(names) do redis.call('ZADD', P .. 'owed', ARGV[2], name) end
return names
`;

/** A write of nothing, which a Redis refuses that has no memory or no disk for more. */
const PROBE = `
return redis.call('SETRANGE', P .. 'none', 0, '')
`;

function script(body: string): Script {
  const text = SHARED + body;
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

export const SCRIPTS = {
  reserve: script(RESERVE),
  read: script(READ),
  list: script(LIST),
  move: script(MOVE),
  cancel: script(CANCEL),
  keep: script(KEEP),
  held: script(HELD),
  fetched: script(FETCHED),
  heads: script(HEADS),
  look: script(LOOK),
  keepOn: script(KEEP_ON),
  withdraw: script(WITHDRAW),
  takeWebhooks: script(TAKE_WEBHOOKS),
  probe: script(PROBE),
} as const;
