/** Arrays of numpy that an app in Python returns. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Unpackr } from 'msgpackr';
import { needs } from '../helpers/needs.js';
import { startHere } from '../helpers/here.js';
import { ROOT, call } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });

test(
  'arrays and scalars of numpy are JSON, and MessagePack',
  { ...LIMIT, skip: needs('python3-numpy') },
  async (t) => {
    const server = await startHere(`${ROOT}test/fixtures/python-apps/answers.py`, {
      t,
      args: ['--python', '/usr/bin/python3'],
    });
    await server.until(({ state }) => state === 'ready');
    assert.equal(
      (await call(`${server.url}/?kind=ndarray`, null, {})).text,
      '{"scores":[0.5,null],"label":3}',
    );
    assert.equal((await call(`${server.url}/?kind=ndarrayAlone`, null, {})).text, '[[0,2],[3,5]]');
    const headers = { accept: 'application/msgpack' };
    const response = await fetch(`${server.url}/?kind=ndarrayAlone`, { method: 'POST', headers });
    assert.deepEqual(unpackr.unpack(Buffer.from(await response.arrayBuffer())), [
      [0, 2],
      [3, 5],
    ]);
    await server.stop();
  },
);
