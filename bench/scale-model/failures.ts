/**
 * For how long in a year a tenant is not served, and how much of a fleet is away at once: failures are drawn by their
 * rates, each lasts as long as was measured. Pure.
 */

import { assumed } from './assumptions.js';
import type { Draws } from './draws.js';

const YEAR_SECONDS = 365.25 * 86_400;

/** What happens to one cell, or to all cells of one Postgres. */
export interface Cause {
  readonly what: string;
  readonly of: 'cell' | 'server';
  readonly perYear: number;
  readonly seconds: number;
}

export function causes(): readonly Cause[] {
  return [
    {
      what: 'an owner crashes',
      of: 'cell',
      perYear: assumed('crashesPerYear'),
      seconds: assumed('crashSeconds'),
    },
    {
      what: "an owner's machine is lost or frozen",
      of: 'cell',
      perYear: assumed('freezesPerYear'),
      seconds: assumed('freezeSeconds'),
    },
    {
      what: 'an owner is replaced in an upgrade',
      of: 'cell',
      perYear: 2 * assumed('upgradesPerYear'),
      seconds: assumed('handOverSeconds'),
    },
    {
      what: 'a primary of Postgres is lost',
      of: 'server',
      perYear: assumed('primariesPerYear'),
      seconds: assumed('failoverSeconds'),
    },
    {
      what: 'a Postgres is lost and somebody has to come',
      of: 'server',
      perYear: assumed('disastersPerYear'),
      seconds: assumed('disasterSeconds'),
    },
  ];
}

export interface Unavailability {
  readonly servers: number;
  /** Seconds of a year of one cell, as the rates have it, and as drawn. */
  readonly expected: number;
  readonly mean: number;
  readonly median: number;
  readonly p99: number;
  /** The part of a year in which a cell is served, as the rates have it. */
  readonly availability: number;
  /** Losses of a Postgres in the whole fleet, in a year. */
  readonly serverEventsPerYear: number;
  /** The part of all cells that one of them takes away. */
  readonly shareOfOne: number;
  /** Seconds of a year in which some cell is away, if no two failures fall together. */
  readonly someAway: number;
}

/** @param perServer cells that share a Postgres */
export function unavailability(draws: Draws, cells: number, perServer: number): Unavailability {
  const servers = Math.ceil(cells / perServer);
  const all = causes();
  const seconds: number[] = [];
  let someAway = 0;
  for (let year = 0; year < assumed('simulatedYears'); year++) {
    const drawn = (of: Cause['of']) => {
      const own = all.filter((cause) => cause.of === of);
      return own.reduce((sum, cause) => sum + draws.poisson(cause.perYear) * cause.seconds, 0);
    };
    const ofServers = Array.from({ length: servers }, () => drawn('server'));
    someAway += ofServers.reduce((sum, away) => sum + away, 0);
    for (let cell = 0; cell < cells; cell++) {
      const own = drawn('cell');
      someAway += own;
      seconds.push(own + ofServers[Math.floor(cell / perServer)]!);
    }
  }
  seconds.sort((a, b) => a - b);
  const mean = seconds.reduce((sum, away) => sum + away, 0) / seconds.length;
  const expected = all.reduce((sum, cause) => sum + cause.perYear * cause.seconds, 0);
  const at = (share: number) => seconds[Math.floor(share * (seconds.length - 1))]!;
  const losses = all.filter((cause) => cause.of === 'server');
  return {
    servers,
    expected,
    mean,
    median: at(0.5),
    p99: at(0.99),
    availability: 1 - expected / YEAR_SECONDS,
    serverEventsPerYear: servers * losses.reduce((sum, { perYear }) => sum + perYear, 0),
    shareOfOne: Math.min(perServer, cells) / cells,
    someAway: someAway / assumed('simulatedYears'),
  };
}
