/** A list with its title, what it says when it is empty, and the buttons that make and change its rows. */

import type { UseQueryResult } from '@tanstack/react-query';
import { type LucideIcon, Plus } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Button, type ButtonKind, ButtonRow } from './button.tsx';
import { CloseContext } from './dialog.tsx';
import { Empty } from './error-box.tsx';
import { ListTable, type ListTableProps } from './list.tsx';
import { Loaded } from './loaded.tsx';
import { Panel } from './page.tsx';
import { type Column, Table, TableNote, type TableProps } from './table.tsx';

interface ListPanelProps<Row> extends Omit<ListTableProps<Row>, 'label' | 'empty'> {
  readonly title: string;
  /** Of the table. Default: the title. */
  readonly label?: string;
  /** Why the list is empty. */
  readonly empty: { readonly title: string; readonly icon?: LucideIcon; readonly about: ReactNode };
  /** Whether the caller may make and change rows. Default: true. */
  readonly mayChange?: boolean;
  readonly create?: Creation;
  /** The buttons of each row. */
  readonly rowActions?: (row: Row) => ReactNode;
  /** Beside the title. */
  readonly actions?: ReactNode;
  /** What the list leaves out. */
  readonly note?: ReactNode;
}

interface Creation {
  readonly label: string;
  /** Of the button in an empty list. */
  readonly first: string;
  readonly icon?: LucideIcon;
  readonly kind?: ButtonKind;
  readonly form: ReactNode;
}

export function ListPanel<Row>(props: ListPanelProps<Row>) {
  const { title, label = title, empty, mayChange = true, columns, ...rest } = props;
  const { create: creation, rowActions, actions, note, ...table } = rest;
  const create = mayChange && creation;
  const [isMaking, setMaking] = useState(false);
  const make = () => setMaking(true);
  const action: Column<Row> = {
    name: 'Action',
    cell: (row) => <ButtonRow>{rowActions?.(row)}</ButtonRow>,
  };
  return (
    <Panel
      title={title}
      isFlush
      actions={
        create ? (
          <Button kind={create.kind ?? 'plain'} icon={create.icon ?? Plus} onClick={make}>
            {create.label}
          </Button>
        ) : (
          actions
        )
      }
    >
      <ListTable
        {...table}
        label={label}
        columns={mayChange && rowActions ? [...columns, action] : columns}
        empty={
          <Empty title={empty.title} icon={empty.icon}>
            <p>{empty.about}</p>
            {create && <Button onClick={make}>{create.first}</Button>}
          </Empty>
        }
      />
      {note && <TableNote>{note}</TableNote>}
      {create && isMaking && (
        <CloseContext value={() => setMaking(false)}>{create.form}</CloseContext>
      )}
    </Panel>
  );
}

/** The rows of a query that has no pages, with their title. */
export function TablePanel<Data, Row>(
  props: Omit<TableProps<Row>, 'label' | 'rows'> & {
    readonly title: string;
    /** Of the table. Default: the title. */
    readonly label?: string;
    readonly query: UseQueryResult<Data>;
    readonly rowsOf: (data: Data) => readonly Row[];
    readonly height?: number;
  },
) {
  const { title, label = title, query, rowsOf, height = 240, ...table } = props;
  return (
    <Panel title={title} isFlush>
      <Loaded query={query} height={height}>
        {(data) => <Table {...table} label={label} rows={rowsOf(data)} />}
      </Loaded>
    </Panel>
  );
}
