package dev.fieldmesh.core.wire

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

/** What a record says. The app understands some kinds, those of Bodies.kt, and keeps the others whole. */
sealed interface Body {
    val kind: String
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
        /** @throws SerializationException when [line] is not a record */
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
