/** Jobs: calls whose clients do not wait, in every state that they can end in. */
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { callAsync, cancelJob, jobEnd, jobPage, startAsync, type JobPage } from '../helpers/jobs.js';
import { editedApp } from '../helpers/edited-app.js';
import { endOf, startJob } from '../helpers/potassium.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { call, eventually, type Server } from '../helpers/server.js';
import { HANDSHAKE } from '../helpers/raw-web-socket.js';
import { RawConnection } from '../helpers/raw-http.js';
import { startHere } from '../helpers/here.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime(({ app }) => {
  describe('one server', LIMIT, () => {
    const shared = shareHere(app('jobs'), { expectedRestarts: 2 });
    const { cues } = shared;
    let server: Server;
    beforeEach(() => (server = shared.server));

    test('any call may be a job: 202 names it, its page has the facts, and its result answers as the call would have', async () => {
      const answer = await callAsync(server, '/', '{"progress":[[0.5,"half"]],"until":"go on"}', {
        'x-request-id': 'mine',
      });
      const id = answer.headers.get('x-banana-job-id') as string;
      const page = `/_k/jobs/${id}`;
      const { headers } = answer;
      assert.deepEqual(
        [
          answer.status,
          headers.get('location'),
          headers.get('preference-applied'),
          headers.get('x-request-id'),
        ],
        [202, page, 'respond-async', 'mine'],
      );
      assert.deepEqual(JSON.parse(answer.text), { started: true, jobId: id, result: page });
      await cues.untilNoted('begun mine 1');
      let running = await jobPage(server, id);
      await eventually(
        async () => (running = await jobPage(server, id)).progress !== null,
        60_000,
        () => JSON.stringify(running),
      );
      assert.deepEqual(
        [running.state, running.attempts, running.progress, running.endedAt],
        ['running', 1, { fraction: 0.5, text: 'half' }, null],
      );
      const early = await fetch(`${server.url}${page}/result`);
      assert.deepEqual([early.status, ((await early.json()) as JobPage).state], [202, 'running']);
      const waiting = jobPage(server, id, '?wait=30s');
      cues.give('go on');
      const ended = await waiting;
      assert.deepEqual(
        [ended.state, ended.progress, ended.result],
        ['succeeded', { fraction: 1, text: 'half' }, { job: { id, attempt: 1 } }],
      );
      const result = await fetch(`${server.url}${page}/result`);
      const plain = await call(`${server.url}/`, '{"result":{"a":[1]}}', {
        'content-type': 'application/json',
      });
      assert.deepEqual(JSON.parse(plain.text), { a: [1] }, 'a call whose client waits is no job');
      assert.deepEqual(
        [result.status, result.headers.get('content-type'), await result.json()],
        [200, plain.headers.get('content-type'), { job: { id, attempt: 1 } }],
      );
    });

    test('status, type and bytes of a result are those of the app, streams are collected', async () => {
      for (const [path, body, type, status, text] of [
        ['/', '{"status":418}', 'application/json', 418, '{"status":418}'],
        ['/', '{"status":202}', 'application/json', 202, '{"status":202}'],
        ['/', '{"chunks":["a","b"]}', 'application/json', 200, 'ab'],
        ['/raw', '\u0001ÿ', 'image/x-mine', 200, '\u0001ÿ'],
      ] as const) {
        const answer = await callAsync(server, path, body, { 'content-type': type });
        const id = answer.headers.get('x-banana-job-id') as string;
        const result = await fetch(`${server.url}/_k/jobs/${id}/result?wait=50s`);
        assert.deepEqual([result.status, (await result.text()).replaceAll(' ', '')], [status, text]);
        if (path === '/raw') assert.equal(result.headers.get('content-type'), type);
        assert.equal(result.headers.get('x-banana-job-id'), null, 'it has ended');
      }
    });

    test('a failed job answers with its own status; the record of an ended job has the last report', async () => {
      const progress = [0.1, 0.2, 0.3].map((fraction) => [fraction, `at ${fraction}`]);
      const [succeeded, id] = (await Promise.all(
        [0, 1].map((failing) => startAsync(server, '/', { progress, failing })),
      )) as [string, string];
      assert.deepEqual((await jobEnd(server, succeeded)).progress, { fraction: 1, text: 'at 0.3' });
      const page = await jobEnd(server, id);
      assert.deepEqual([page.state, page.error?.code], ['failed', 'SERVE_INFERENCE_FAILED']);
      assert.deepEqual(page.progress, { fraction: 0.3, text: 'at 0.3' });
      const result = await fetch(`${server.url}/_k/jobs/${id}/result`);
      assert.deepEqual([result.status, /SERVE_INFERENCE_FAILED/.test(await result.text())], [500, true]);
    });

    test('only a repeatable job is tried again, after a throw and after the death of its worker, so often in all', async () => {
      const ids = await Promise.all([
        startAsync(server, '/again', { failing: 1 }, { 'x-request-id': 'throws' }),
        startAsync(server, '/again', { dying: 1 }, { 'x-request-id': 'dies' }),
        startJob(server, '/later-again', { failing: 5 }, 'fails'),
        startJob(server, '/later', { dying: 1 }, 'lost'),
        startAsync(server, '/again', { status: 409 }, { 'x-request-id': 'answers' }),
      ]);
      const ends = await Promise.all(ids.map((id) => jobEnd(server, id)));
      assert.deepEqual(
        ends.map(({ state, attempts }) => [state, attempts]),
        [
          ['succeeded', 2],
          ['succeeded', 2],
          ['failed', 2],
          ['lost', 1],
          ['succeeded', 1],
        ],
      );
      const begins = (name: string): number =>
        cues.notes().filter((line) => line.startsWith(`begun ${name} `)).length;
      assert.deepEqual(['throws', 'dies', 'fails', 'lost', 'answers'].map(begins), [2, 2, 2, 1, 1]);
    });

    test('a cancel ends a queued job, and tells the app of a running one, whose outcome decides', async () => {
      const deaf = await startAsync(
        server,
        '/',
        { until: 'deaf ends', deaf: true },
        { 'x-request-id': 'deaf' },
      );
      await cues.untilNoted('begun deaf 1');
      const queued = await startAsync(server, '/', {});
      const answers = [await cancelJob(server, queued), await cancelJob(server, deaf)];
      assert.deepEqual(
        answers.map(({ status }) => status),
        [204, 202],
      );
      assert.deepEqual(
        [(await jobPage(server, queued)).state, (await jobPage(server, deaf)).state],
        ['cancelled', 'running'],
      );
      cues.give('deaf ends');
      assert.equal((await jobEnd(server, deaf)).state, 'succeeded');
      const hears = await startAsync(server, '/again', { until: 'never' }, { 'x-request-id': 'hears' });
      await cues.untilNoted('begun hears 1');
      const early = await fetch(`${server.url}/_k/jobs/${hears}/result`);
      assert.deepEqual([early.status, early.headers.get('x-banana-job-id')], [202, hears]);
      assert.equal((await cancelJob(server, hears)).status, 202);
      const page = await jobEnd(server, hears);
      assert.deepEqual(
        [page.state, page.attempts, page.error?.code],
        ['cancelled', 1, 'SERVE_JOB_CANCELLED'],
      );
      for (const id of [queued, hears])
        await server.untilPrinted(new RegExp(`INFO.* ${id} .* was cancelled`));
      const result = await fetch(`${server.url}/_k/jobs/${hears}/result`);
      assert.equal(result.status, 409);
      assert.deepEqual(
        [(await cancelJob(server, hears)).status, (await cancelJob(server, 'none')).status],
        [409, 404],
      );
    });

    test('events tell of each change, up to the end', async () => {
      const id = await startAsync(server, '/', {
        progress: [[0.25, 'a quarter']],
        until: 'events end',
        result: 'a\nb',
      });
      const events = await fetch(`${server.url}/_k/jobs/${id}`, { headers: { accept: 'text/event-stream' } });
      assert.match(events.headers.get('content-type') ?? '', /^text\/event-stream/);
      const pages: JobPage[] = [];
      let text = '';
      for await (const chunk of events.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(chunk).toString();
        const whole = text.split('\n\n');
        text = whole.pop() as string;
        for (const event of whole) pages.push(JSON.parse(event.replace(/^data: /, '')) as JobPage);
        if (pages.at(-1)?.progress?.fraction === 0.25) cues.give('events end');
      }
      assert.equal(text, '');
      const last = pages.at(-1);
      assert.deepEqual([last?.state, last?.result, last?.progress?.fraction], ['succeeded', 'a\nb', 1]);
      assert.ok(pages.some(({ state, progress }) => state === 'running' && progress?.fraction === 0.25));
    });

    test('apps see no secret of a client in a job', async () => {
      const secret = {
        authorization: 'Basic x',
        'proxy-authorization': 'y',
        cookie: 'z',
        'x-banana-api-key': 'k',
      };
      const id = await startAsync(server, '/headers', {}, { ...secret, 'x-mine': 'kept' });
      const seen = (await jobEnd(server, id)).result as Record<string, string>;
      const names = Object.keys(seen).map((name) => name.toLowerCase());
      assert.deepEqual(
        [...Object.keys(secret), 'x-mine'].map((name) => names.includes(name)),
        [false, false, false, false, true],
      );
    });
  });
});

withOneRuntime(({ app }) => {
  describe('one server', LIMIT, () => {
    const shared = shareHere(app('jobs'), { args: ['--job-bytes', '8mb', '--cors-origin', '*'] });
    const { cues } = shared;
    let server: Server;
    beforeEach(() => (server = shared.server));

    test('a key makes one job of many calls, another body is 422, and the answer is that of the first', async () => {
      const key = { 'idempotency-key': 'k1' };
      const all = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          callAsync(server, '/', '{"result":1}', { ...key, 'x-request-id': `keyed-${i}` }),
        ),
      );
      const ids = all.map(({ headers }) => headers.get('x-banana-job-id'));
      assert.deepEqual([new Set(all.map(({ status }) => status)), new Set(ids).size], [new Set([202]), 1]);
      await jobEnd(server, ids[0] as string);
      assert.equal(cues.notes().filter((line) => line.startsWith('begun keyed-')).length, 1);
      const other = await callAsync(server, '/', '{"result":2}', key);
      assert.deepEqual([other.status, /SERVE_KEY_CONFLICT/.test(other.text)], [422, true]);
      assert.equal((await callAsync(server, '/headers', '{}', key)).status, 202, 'the key of another route');
    });

    test("a gateway start's key is about its modelInputs; its failure is in its own form", async () => {
      const start = (id: string, input: unknown): ReturnType<typeof call> => {
        const body = JSON.stringify({ id, created: Date.now(), modelInputs: input, startOnly: true });
        return call(`${server.url}/start/v4/`, body, { 'idempotency-key': 'g1' });
      };
      const [first, again, other] = [
        await start('1', { result: 1 }),
        await start('2', { result: 1 }),
        await start('3', {}),
      ];
      const callIds = [first, again].map(({ text }) => (JSON.parse(text) as { callID: string }).callID);
      assert.equal(callIds[0], callIds[1]);
      assert.deepEqual(
        [other.status, /inference server error: .*SERVE_KEY_CONFLICT/.test(other.text)],
        [200, true],
      );
    });

    test('wishes out of range are 400 for a job, and mean nothing to a plain call', async () => {
      const wrong = { 'x-banana-job-priority': '10' };
      assert.equal((await callAsync(server, '/', '{}', wrong)).status, 400);
      const plain = await call(`${server.url}/`, '{}', { 'content-type': 'application/json', ...wrong });
      assert.equal(plain.status, 200);
      assert.equal((await callAsync(server, '/', '{')).status, 400, 'bad JSON is told at once');
    });

    test('a job begins when it is due, the most urgent first, and expires when it was due too long', async () => {
      const holds = await startAsync(server, '/', { until: 'order' }, { 'x-request-id': 'holds' });
      await cues.untilNoted('begun holds 1');
      const wish = (name: string, headers: object): Promise<string> =>
        startAsync(server, '/', {}, { 'x-request-id': name, ...headers });
      const expires = await wish('expires', { 'x-banana-job-ttl-seconds': '0.2' });
      const usual = await wish('usual', {});
      const urgent = await wish('urgent', { 'x-banana-job-priority': '9' });
      const sentAt = Date.now();
      const late = await wish('late', { 'x-banana-job-delay-seconds': '2', 'x-banana-job-priority': '9' });
      assert.equal((await jobEnd(server, expires)).state, 'expired');
      assert.equal((await fetch(`${server.url}/_k/jobs/${expires}/result`)).status, 504);
      cues.give('order');
      for (const id of [holds, usual, urgent, late])
        assert.equal((await jobEnd(server, id)).state, 'succeeded');
      const order = cues.notes().filter((line) => /^begun (?:expires|usual|urgent)/.test(line));
      assert.deepEqual(order, ['begun urgent 1', 'begun usual 1']);
      const afterMs = Date.parse((await jobPage(server, late)).begunAt ?? '') - sentAt;
      assert.ok(afterMs >= 2000, `not before it is due: ${afterMs} ms`);
    });

    test('the list has the newest first, without results; a page of another origin may not read it', async () => {
      const ids = [await startAsync(server, '/', { result: 'large' }), await startAsync(server, '/', {})];
      for (const id of ids) await jobEnd(server, id);
      const list = async (query: string): Promise<{ jobs: JobPage[]; cursor: string | null }> =>
        (await (await fetch(`${server.url}/_k/jobs${query}`)).json()) as never;
      const first = await list('?state=succeeded&limit=1');
      assert.deepEqual(
        [first.jobs.map(({ id }) => id), 'result' in (first.jobs[0] as object)],
        [[ids[1]], false],
      );
      const second = await list(`?state=succeeded&limit=1&cursor=${first.cursor}`);
      assert.deepEqual(
        second.jobs.map(({ id }) => id),
        [ids[0]],
      );
      for (const [query, headers, status] of [
        ['?state=odd', {}, 400],
        ['?limit=0', {}, 400],
        ['', { origin: 'https://elsewhere.example' }, 403],
      ] as const)
        assert.equal((await fetch(`${server.url}/_k/jobs${query}`, { headers })).status, status, query);
    });

    test('a large result has its own page; one without room is dropped, which the page says', async () => {
      const large = await startAsync(server, '/', { large: 1_100_000 });
      const page = await jobEnd(server, large);
      assert.deepEqual(
        [page.state, page.result, page.resultUrl],
        ['succeeded', null, `/_k/jobs/${large}/result`],
      );
      assert.equal((await (await fetch(server.url + page.resultUrl)).text()).length, 1_100_002);
      const huge = await startAsync(server, '/', { large: 9_000_000 });
      const dropped = await jobEnd(server, huge);
      assert.deepEqual([dropped.state, dropped.result, dropped.resultUrl], ['succeeded', null, undefined]);
      assert.match(dropped.resultDropped ?? '', /no room for its 9000002 bytes/);
      assert.equal((await fetch(`${server.url}/_k/jobs/${huge}/result`)).status, 410);
    });

    test('a WebSocket cannot be a job', async () => {
      const connection = await RawConnection.open(server, true);
      connection.send(`GET /socket HTTP/1.1\r\n${HANDSHAKE}\r\nPrefer: respond-async\r\n\r\n`);
      await connection.received('HTTP/1.1 400 ');
      connection.destroy();
    });

    test('pages may read the id of a job', async () => {
      const answer = await callAsync(server, '/', '{}', { origin: 'https://app.example.com' });
      const exposed = answer.headers.get('access-control-expose-headers') ?? '';
      assert.deepEqual([/X-Banana-Job-Id/.test(exposed), /Location/.test(exposed)], [true, true]);
    });
  });

  test('while both wait, a worker takes a call and a job in turn', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(app('jobs'), { t, env: cues.env });
    await startAsync(server, '/', { until: 'go on', deaf: true }, { 'x-request-id': 'holds' });
    await cues.untilNoted('begun holds 1');
    const jobs: string[] = [];
    for (const name of ['j1', 'j2']) jobs.push(await startAsync(server, '/', {}, { 'x-request-id': name }));
    const calls = ['c1', 'c2'].map((name) =>
      call(`${server.url}/`, '{}', { 'content-type': 'application/json', 'x-request-id': name }),
    );
    await server.until(({ model }) => model.queue.waiting === 4);
    cues.give('go on');
    for (const one of calls) assert.equal((await one).status, 200);
    for (const id of jobs) assert.equal((await jobEnd(server, id)).state, 'succeeded');
    const order = cues
      .notes()
      .flatMap((line) => /^begun (\w+) /.exec(line)?.[1] ?? [])
      .slice(1);
    const kinds = order.map((name) => name[0]);
    assert.ok(
      kinds.every((kind, i) => i === 0 || kind !== kinds[i - 1]),
      order.join(' '),
    );
    await server.stop();
  });

  test('--queue-timeout is not about jobs', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(app('jobs'), { t, args: ['--queue-timeout', '1s'], env: cues.env });
    await server.until(({ state }) => state === 'ready'); // until then it is
    const holds = await startAsync(server, '/', { until: 'go on' }, { 'x-request-id': 'holds' });
    await cues.untilNoted('begun holds 1');
    const waits = await startAsync(server, '/', {});
    const timedOut = await call(`${server.url}/`, '{}', { 'content-type': 'application/json' });
    assert.equal(timedOut.status, 504, 'so long the job has waited too');
    cues.give('go on');
    for (const id of [holds, waits]) assert.equal((await jobEnd(server, id)).state, 'succeeded');
    await server.stop();
  });

  test('SIGTERM: a job that is not due fails, and the log has its id', LIMIT, async (t) => {
    const server = await startHere(app('jobs'), { t, args: ['--drain-lag', '0s'] });
    const id = await startAsync(server, '/', {}, { 'x-banana-job-delay-seconds': '3600' });
    const events = await fetch(`${server.url}/_k/jobs/${id}`, { headers: { accept: 'text/event-stream' } });
    const waiting = jobPage(server, id, '?wait=50s');
    server.process.kill('SIGTERM');
    const ends = [(await waiting).state, /"state":"(\w+)"[^\n]*\n\n$/.exec(await events.text())?.[1]];
    assert.deepEqual([ends, await server.ended], [['failed', 'failed'], { code: 0, signal: null }]);
    assert.match(server.stderr(), new RegExp(`the background job ${id} of / failed: .*shutting down`));
  });

  test(
    'a job waits while its model is failing, runs once that is well again, and holds up no drain',
    LIMIT,
    async (t) => {
      const cues = makeCues(t);
      const files = editedApp(t, {
        'app.mjs': `import { existsSync } from 'node:fs';
        const isGiven = (cue) => existsSync(process.env.CUES + '/' + cue);
        export function init() { if (isGiven('broken')) throw new Error('broken'); }
        export async function inference({ ends }) {
          if (ends) return 'done';
          while (!isGiven('broken')) await new Promise((resolve) => setTimeout(resolve, 5));
          process.kill(process.pid, 'SIGKILL');
        }`,
      });
      const args = ['--restart-limit', '0', '--drain-lag', '0s'];
      const server = await startHere(files.path('app.mjs'), { t, args, env: cues.env });
      await server.until(({ state }) => state === 'ready'); // or the first start might be broken, and end the server
      const first = [
        await startAsync(server, '/', {}),
        await startAsync(server, '/', { ends: true }),
      ] as const;
      cues.give('broken');
      assert.equal((await jobEnd(server, first[0])).state, 'lost');
      await server.until(({ model }) => model.state === 'failing');
      assert.equal((await jobPage(server, first[1])).state, 'queued');
      assert.equal((await callAsync(server, '/', '{}')).status, 503);
      cues.forget();
      assert.equal((await jobEnd(server, first[1])).state, 'succeeded');
      const [lost, waits] = [await startAsync(server, '/', {}), await startAsync(server, '/', {})];
      cues.give('broken');
      assert.equal((await jobEnd(server, lost)).state, 'lost');
      await server.until(({ model }) => model.state === 'failing');
      assert.equal((await jobPage(server, waits)).state, 'queued');
      server.process.kill('SIGTERM');
      assert.deepEqual(await server.ended, { code: 0, signal: null });
      assert.match(server.stderr(), new RegExp(`the background job ${waits} of / failed`));
    },
  );

  test('a full store refuses new jobs with 503 until there is room', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(app('jobs'), { t, args: ['--job-bytes', '4kb'], env: cues.env });
    await server.until(({ state }) => state === 'ready');
    const holds = await startAsync(server, '/', { until: 'go on' }, { 'x-request-id': 'holds' });
    await cues.untilNoted('begun holds 1');
    for (let i = 0; i < 3; i += 1) await startAsync(server, '/', {});
    const full = await callAsync(server, '/', '{}');
    assert.deepEqual([full.status, full.headers.get('retry-after')], [503, '5']);
    cues.give('go on');
    await jobEnd(server, holds);
    const next = await startAsync(server, '/', {});
    await endOf(server, next);
    assert.equal(
      (await fetch(`${server.url}/_k/jobs/${holds}`)).status,
      404,
      'the job that ended first was dropped',
    );
    await server.stop();
  });
});
