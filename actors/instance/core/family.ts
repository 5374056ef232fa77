/** Findings about parents and children that wait for each other: neither moves alone. */

import type { MigrationFinding } from '../../../schema/continuity.js';
import type { Execution, StepRecord } from '../../../schema/execution.js';
import { migrationFinding } from '../../../src/core/migration-findings.js';

interface FamilyMember {
  readonly instance: string;
  readonly parent: string | null;
  readonly execution: Pick<Execution, 'o'>;
}

/** The children that open blocks wait for. */
export function openChildren({ o }: Pick<Execution, 'o'>): { node: number; child: string }[] {
  return Object.entries(o).flatMap(([node, record]) => {
    const { p, c } = record as Partial<StepRecord>;
    return p === 'child' && c !== undefined ? [{ node: Number(node), child: c }] : [];
  });
}

export function familyFindings(
  { instance, parent, execution }: FamilyMember,
  blockOf: (node: number) => string | null = () => null,
): MigrationFinding[] {
  const findings = openChildren(execution).map(({ node, child }) =>
    migrationFinding(
      'KIN_STAYS',
      `instance ${instance} waits for its child ${child}, which would stay behind`,
      { block_id: blockOf(node) },
    ),
  );
  if (parent !== null) {
    const summary = `instance ${instance} is the child of ${parent}, which stays here`;
    findings.push(migrationFinding('KIN_STAYS', summary));
  }
  return findings;
}
