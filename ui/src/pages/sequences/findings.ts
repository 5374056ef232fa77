/** Asks the engine to validate a definition that is being written. */

import {
  type Client,
  type CreateSequence,
  EngineError,
  type SequenceValidated,
} from 'durable-workflow-engine-client';

export interface Finding {
  readonly severity: 'error' | 'warning';
  readonly path: string;
  readonly message: string;
}

export interface Verdict {
  readonly isValid: boolean;
  readonly findings: readonly Finding[];
}

/** @throws Error if the engine could not validate it */
export async function judge(client: Client, definition: CreateSequence): Promise<Verdict> {
  try {
    const { warnings } = await client.sequences.validate(definition);
    return { isValid: true, findings: findingsOf(warnings, 'warning') };
  } catch (error) {
    if (!(error instanceof EngineError) || error.status !== 400) throw error;
    return { isValid: false, findings: refusedFor(error) };
  }
}

type Told = SequenceValidated['warnings'];

function refusedFor({ message, body }: EngineError): readonly Finding[] {
  const { errors = [], warnings = [] } = body as { errors?: Told; warnings?: Told };
  const found = [...findingsOf(errors, 'error'), ...findingsOf(warnings, 'warning')];
  return errors.length > 0 ? found : [{ severity: 'error', path: '', message }, ...found];
}

/** Shortens the path at the start of a message to its last name, since the finding links to the position. */
function findingsOf(told: Told, severity: Finding['severity']): readonly Finding[] {
  return told.map(({ path, message }) => {
    const isNamed = path !== '' && message.startsWith(`${path} `);
    const place = isNamed ? path.slice(path.lastIndexOf('.') + 1) : '';
    return { severity, path, message: isNamed ? place + message.slice(path.length) : message };
  });
}
