import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addQueues, inodeOf } from '../../../../supervisor/http/socket/kernel-queues.js';

test('queues are read from the tables of IPv4 and IPv6, by inode', () => {
  const queues = new Map<string, number>();
  addQueues(
    queues,
    `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 00000000 100 0 0 10 0
   1: 0100007F:1F40 0100007F:D2B8 01 003B5000:00000000 04:0000001E 00000000  1000        0 4712 4 00000000 20 4 31 10 -1
`,
  );
  addQueues(
    queues,
    `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
  12: 00000000000000000000000001000000:1F40 00000000000000000000000001000000:A1B2 01 0000000A:00000007 01:00000019 00000000     0        0 4713 2 00000000 20 4 0 10 -1
`,
  );
  assert.deepEqual(Object.fromEntries(queues), { 4712: 0x3b5000, 4713: 10 });
});

test('a file that is not a socket has no inode', () => {
  assert.equal(inodeOf(-1), null);
});
