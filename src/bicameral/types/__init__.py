"""The types of values in plans: arguments and results of tools, extracted fields, and what the plan check infers.

`type_from_annotation` reads Python annotations. Types can be compared (`is_assignable`, `join_types`), written as JSON
or JSON Schema, and checked against a value (`mismatch`). Values are plain: text, numbers, booleans, dates, lists, and
dicts (a record is a dict whose fields are known). Some texts have a narrower format with a pattern (`FORMATS`);
`is_bounded` says whether values of a type cannot hold free text.
"""

from bicameral.types._conversion import (
    Address as Address,
    Code as Code,
    Currency as Currency,
    FilePath as FilePath,
    Iban as Iban,
    Id as Id,
    JsonType as JsonType,
    Money as Money,
    Phone as Phone,
    Url as Url,
    annotation_doc as annotation_doc,
    signature_hints as signature_hints,
    type_from_annotation as type_from_annotation,
    type_from_json as type_from_json,
    type_json_schema as type_json_schema,
    type_to_json as type_to_json,
)
from bicameral.types._formats import FORMATS as FORMATS, TextFormat as TextFormat, format_problem as format_problem
from bicameral.types._table import (
    MAX_EXACT as MAX_EXACT,
    Table as Table,
    TableColumn as TableColumn,
    column_parts as column_parts,
    columnar_engine as columnar_engine,
    plain_value as plain_value,
    table_from_columns as table_from_columns,
    table_reference as table_reference,
)
from bicameral.types._types import (
    ANY as ANY,
    BOOL as BOOL,
    DATE as DATE,
    DATETIME as DATETIME,
    DURATION as DURATION,
    FLOAT as FLOAT,
    INT as INT,
    MONEY as MONEY,
    NULL as NULL,
    NUMBER as NUMBER,
    STR as STR,
    TIME as TIME,
    AnyType as AnyType,
    BoolType as BoolType,
    CellType as CellType,
    DateTimeType as DateTimeType,
    DateType as DateType,
    DictType as DictType,
    DurationType as DurationType,
    Field as Field,
    FloatType as FloatType,
    IntType as IntType,
    ListType as ListType,
    LiteralType as LiteralType,
    NullType as NullType,
    OptionalType as OptionalType,
    RecordType as RecordType,
    StrType as StrType,
    TimeType as TimeType,
    TupleType as TupleType,
    Type as Type,
    is_assignable as is_assignable,
    is_bounded as is_bounded,
    iter_types as iter_types,
    join_types as join_types,
    optional_type as optional_type,
    without_optional as without_optional,
)
from bicameral.types._values import (
    mismatch as mismatch,
    to_plain as to_plain,
    value_from_json as value_from_json,
    value_to_json as value_to_json,
)
