/** Public, private and special addresses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kindOfAddress, type AddressKind } from '../../../supervisor/store/known-hosts.js';

const KINDS: Readonly<Record<AddressKind, readonly string[]>> = {
  public: [
    '93.184.215.14',
    '168.63.129.17',
    '172.32.0.1',
    '100.128.0.1',
    '192.169.0.1',
    '2606:4700::1111',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
    '64:ff9b::8.8.8.8',
  ],
  private: [
    '127.0.0.1',
    '127.255.255.254',
    '10.0.0.5',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    '198.19.0.1',
    '::1',
    'fd12:3456::1',
    'fec0::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.1.2.3',
    '64:ff9b::7f00:1',
    '64:ff9b::10.1.2.3',
    '64:ff9b:1::808:808',
  ],
  special: [
    '169.254.169.254',
    '168.63.129.16',
    '::ffff:169.254.169.254',
    '0.0.0.0',
    '0.1.2.3',
    '192.0.0.192',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    'fe80::1',
    'fd00:ec2::254',
    'ff02::1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::1',
    '2002:7f00:1::1',
  ],
};
for (const [kind, addresses] of Object.entries(KINDS)) {
  for (const address of addresses)
    test(`${address} is ${kind}`, () => assert.equal(kindOfAddress(address), kind));
}
