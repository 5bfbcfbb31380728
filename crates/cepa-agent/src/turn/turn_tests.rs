//! Tests of the turn.
