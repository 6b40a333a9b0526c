package dev.fieldmesh.core.wire

import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.decodeFromJsonElement
import kotlinx.serialization.json.encodeToJsonElement
import kotlinx.serialization.json.jsonObject

/** Names a record and places it in time and in the run; (node, epoch, seq) is unique. */
@Serializable
data class Header(
    val kind: String,
    val version: Int = SCHEMA_VERSION,
    val node: String,
    val epoch: String,
    val seq: Long,
    @SerialName("t_boot_ns") val tBootNs: Long,
    val run: String? = null,
    val trial: Int? = null,
    val attempt: Int? = null,
)

/** What a record says. The app understands some kinds and keeps the others whole. */
sealed interface Body {
    val kind: String
}

/** A GPS receiver at one moment; the fix is present only the first time that it is told. */
@Serializable
data class Gps(
    val mode: Int,
    @SerialName("fix_age_ms") val fixAgeMs: Double? = null,
    @SerialName("fix_boot_ns") val fixBootNs: Long? = null,
    @SerialName("time_utc") val timeUtc: String? = null,
    @SerialName("lat_deg") val latDeg: Double? = null,
    @SerialName("lon_deg") val lonDeg: Double? = null,
    @SerialName("alt_m") val altM: Double? = null,
    @SerialName("speed_mps") val speedMps: Double? = null,
    @SerialName("track_deg") val trackDeg: Double? = null,
    @SerialName("speed_err_mps") val speedErrMps: Double? = null,
    @SerialName("horiz_err_m") val horizErrM: Double? = null,
    @SerialName("satellites_used") val satellitesUsed: Int? = null,
    val hdop: Double? = null,
    val connected: Boolean,
) : Body {
    override val kind get() = "gps"
}

@Serializable
data class TrialState(val state: String, val outcome: String? = null, val reason: String? = null) : Body {
    override val kind get() = "trial"
}

@Serializable
data class Window(
    @SerialName("open_boot_ns") val openBootNs: Long,
    @SerialName("close_boot_ns") val closeBootNs: Long,
    @SerialName("go_path") val goPath: String? = null,
    @SerialName("go_uncertainty_us") val goUncertaintyUs: Double? = null,
) : Body {
    override val kind get() = "window"
}

@Serializable
data class Station(
    val peer: String,
    @SerialName("signal_dbm") val signalDbm: Double? = null,
    @SerialName("tx_bitrate_mbps") val txBitrateMbps: Double? = null,
    @SerialName("rx_bitrate_mbps") val rxBitrateMbps: Double? = null,
    @SerialName("tx_retries") val txRetries: Long? = null,
    @SerialName("tx_failed") val txFailed: Long? = null,
    @SerialName("inactive_ms") val inactiveMs: Double? = null,
) : Body {
    override val kind get() = "station"
}

@Serializable
data class Event(val level: String, val text: String) : Body {
    override val kind get() = "event"
}

/** A kind that the app does not look into, as it came. */
data class Other(override val kind: String, val raw: JsonObject) : Body

/** One line of a spool. */
data class Record(val header: Header, val body: Body) {

    fun encode(): String {
        if (body is Other) return body.raw.toString()
        val head = WireJson.encodeToJsonElement(header.copy(kind = body.kind)).jsonObject
        return JsonObject(head + encodeBody(body)).toString()
    }

    companion object {
        /** @throws SerializationException when [line] is no record */
        fun decode(line: String): Record {
            val element = WireJson.parseToJsonElement(line) as? JsonObject
                ?: throw SerializationException("decode record: no object in ${line.take(80)}")
            val header = WireJson.decodeFromJsonElement<Header>(element)
            val serializer = bodySerializer(header.kind)
                ?: return Record(header, Other(header.kind, element))
            return Record(header, WireJson.decodeFromJsonElement(serializer, element))
        }
    }
}

private fun bodySerializer(kind: String): KSerializer<out Body>? = when (kind) {
    "gps" -> Gps.serializer()
    "trial" -> TrialState.serializer()
    "window" -> Window.serializer()
    "station" -> Station.serializer()
    "event" -> Event.serializer()
    else -> null
}

private fun encodeBody(body: Body): JsonObject = when (body) {
    is Gps -> WireJson.encodeToJsonElement(body)
    is TrialState -> WireJson.encodeToJsonElement(body)
    is Window -> WireJson.encodeToJsonElement(body)
    is Station -> WireJson.encodeToJsonElement(body)
    is Event -> WireJson.encodeToJsonElement(body)
    is Other -> body.raw
}.jsonObject
