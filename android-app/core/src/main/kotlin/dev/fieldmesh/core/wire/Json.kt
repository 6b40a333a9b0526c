package dev.fieldmesh.core.wire

import kotlinx.serialization.json.Json

/**
 * How the agent's JSON is read and written: what is unknown is absent and
 * never null, names that this version does not know are passed over.
 */
val WireJson: Json = Json {
    ignoreUnknownKeys = true
    explicitNulls = false
    encodeDefaults = true
}

/** The version that every record carries; see protocols/wire. */
const val SCHEMA_VERSION = 1
