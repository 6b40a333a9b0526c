package face

import (
	"strconv"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// roomForRecords is what photos leave of the spool's room to records, or an eighth of the room that it may have.
const roomForRecords = 256 << 20

// undisturbed refuses what would send many packets, or write much, beside an attempt.
func (f *Face) undisturbed() error {
	if key, busy := f.engine.Attempt(); busy {
		return &wire.Error{Code: wire.CodeBusy, Message: "trial " + strconv.Itoa(key.Trial) + " is under way; photos " +
			"and recordings wait until it has ended", Cure: "ask again then"}
	}
	return nil
}

// Attachment tells how much of a photo or recording is here.
func (f *Face) Attachment(sha256 string) (wire.AttachmentHeld, error) {
	if err := f.undisturbed(); err != nil {
		return wire.AttachmentHeld{}, err
	}
	return f.attachments.Held(sha256)
}

// PutAttachment takes the next bytes of one, where records keep enough room.
func (f *Face) PutAttachment(sha256 string, offset int, data []byte) (wire.AttachmentHeld, error) {
	if err := f.undisturbed(); err != nil {
		return wire.AttachmentHeld{}, err
	}
	records := int64(roomForRecords)
	if f.cfg.QuotaBytes > 0 {
		records = min(records, f.cfg.QuotaBytes/8)
	}
	if err := f.spool.CheckRoom(records + wire.MaxAttachment); err != nil {
		return wire.AttachmentHeld{}, wire.Errorf(wire.CodeDiskFull, "no room for a photo or recording beside the "+
			"records: %v", err)
	}
	return f.attachments.Put(sha256, offset, data)
}

// AttachmentData reads part of a whole one.
func (f *Face) AttachmentData(sha256 string, offset int64, limit int) ([]byte, int64, error) {
	if err := f.undisturbed(); err != nil {
		return nil, 0, err
	}
	return f.attachments.Read(sha256, offset, limit)
}

// Archived lets one go that an archive has.
func (f *Face) Archived(sha256 string) (wire.AttachmentHeld, error) {
	return f.attachments.Archived(sha256)
}
