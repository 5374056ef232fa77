/** Connections by address as the system tells them, and whose places are given back after. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AddressCensus, addressKey, openByAddress } from '../../src/http/address-census.js';

const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue';
const line = (local: string, remote: string, state: string) =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000`;
const LOOPBACK_6 = '00000000000000000000000001000000';
const MAPPED = '0000000000000000FFFF00000100007F';

describe('a census of connections', () => {
  test('counts those to the port that are open, by address', () => {
    const tcp = [
      HEAD,
      line('0100007F:1F90', '00000000:0000', '0A'),
      line('0100007F:1F90', '0100007F:C001', '01'),
      line('0100007F:1F90', '0100007F:C002', '08'),
      line('0100007F:1F90', '0100007F:C003', '06'),
      line('0100007F:1F90', '0200007F:C004', '01'),
      line('0100007F:1F91', '0100007F:C005', '01'),
      line('0100007F:C001', '0100007F:1F90', '01'),
    ].join('\n');
    const tcp6 = [
      HEAD,
      line(`${LOOPBACK_6}:1F90`, `${LOOPBACK_6}:C001`, '01'),
      line(`${MAPPED}:1F90`, `${MAPPED}:C002`, '01'),
    ].join('\n');
    const counts = openByAddress([tcp, tcp6], 8080);
    assert.deepEqual(Object.fromEntries(counts), {
      '7f000001': 3,
      '7f000002': 1,
      '00000000000000000000000000000001': 1,
    });
  });

  test('spells IPv4 within IPv6 as IPv4', () => {
    const mapped = Buffer.from('00000000000000000000ffff7f000001', 'hex');
    assert.equal(addressKey(mapped), addressKey(Buffer.from([127, 0, 0, 1])));
  });

  test('gives back the places of addresses whose connections are gone, and as many as have left', () => {
    const tcp = [HEAD, line('0100007F:1F90', '0100007F:C001', '01')].join('\n');
    const census = new AddressCensus(() => [tcp]);
    const given: string[] = [];
    for (const address of ['7f000001', '7f000002', '7f000002', '7f000002']) {
      census.came(address, () => given.push(address));
    }
    assert.equal(census.settle(8080, 0), false);
    census.left();
    census.left();
    assert.equal(census.stale, 2);
    assert.equal(census.settle(8080, 0), true);
    assert.deepEqual(given, ['7f000002', '7f000002']);
    assert.equal(census.stale, 0);
    census.left();
    // Not again at once.
    assert.equal(census.settle(8080, 100), false);
    assert.equal(census.settle(8080, 300), true);
    assert.equal(given.length, 3);
  });
});
